#include "record/checksum.h"

#include <string.h>

enum { SLICES = 8 };

/* The entry of a byte: the sum, without carry, of the entries of its bits. */
#define ENTRY(byte, b0, b1, b2, b3, b4, b5, b6, b7)                                                \
    (((byte)&1 ? b0 : 0u) ^ ((byte)&2 ? b1 : 0u) ^ ((byte)&4 ? b2 : 0u) ^ ((byte)&8 ? b3 : 0u) ^   \
     ((byte)&16 ? b4 : 0u) ^ ((byte)&32 ? b5 : 0u) ^ ((byte)&64 ? b6 : 0u) ^                       \
     ((byte)&128 ? b7 : 0u))
#define FOUR(byte, ...)                                                                            \
    ENTRY(byte, __VA_ARGS__), ENTRY((byte) + 1, __VA_ARGS__), ENTRY((byte) + 2, __VA_ARGS__),      \
        ENTRY((byte) + 3, __VA_ARGS__)
#define SIXTEEN(byte, ...)                                                                         \
    FOUR(byte, __VA_ARGS__), FOUR((byte) + 4, __VA_ARGS__), FOUR((byte) + 8, __VA_ARGS__),         \
        FOUR((byte) + 12, __VA_ARGS__)
#define SIXTY_FOUR(byte, ...)                                                                      \
    SIXTEEN(byte, __VA_ARGS__), SIXTEEN((byte) + 16, __VA_ARGS__),                                 \
        SIXTEEN((byte) + 32, __VA_ARGS__), SIXTEEN((byte) + 48, __VA_ARGS__)
#define SLICE(...)                                                                                 \
    {                                                                                              \
        SIXTY_FOUR(0, __VA_ARGS__), SIXTY_FOUR(64, __VA_ARGS__), SIXTY_FOUR(128, __VA_ARGS__),     \
            SIXTY_FOUR(192, __VA_ARGS__)                                                           \
    }

/* Sarwate's table for one byte, and the tables of Intel's "slicing by 8" for eight bytes at once.
 * The numbers are the checksums (polynomial 0xedb88320) of single bits with 0 to 7 bytes of zeros
 * behind them. */
static const uint32_t tables[SLICES][256] = {
    SLICE(0x77073096, 0xee0e612c, 0x076dc419, 0x0edb8832, 0x1db71064, 0x3b6e20c8, 0x76dc4190,
          0xedb88320),
    SLICE(0x191b3141, 0x32366282, 0x646cc504, 0xc8d98a08, 0x4ac21251, 0x958424a2, 0xf0794f05,
          0x3b83984b),
    SLICE(0x01c26a37, 0x0384d46e, 0x0709a8dc, 0x0e1351b8, 0x1c26a370, 0x384d46e0, 0x709a8dc0,
          0xe1351b80),
    SLICE(0xb8bc6765, 0xaa09c88b, 0x8f629757, 0xc5b428ef, 0x5019579f, 0xa032af3e, 0x9b14583d,
          0xed59b63b),
    SLICE(0x3d6029b0, 0x7ac05360, 0xf580a6c0, 0x30704bc1, 0x60e09782, 0xc1c12f04, 0x58f35849,
          0xb1e6b092),
    SLICE(0xcb5cd3a5, 0x4dc8a10b, 0x9b914216, 0xec53826d, 0x03d6029b, 0x07ac0536, 0x0f580a6c,
          0x1eb014d8),
    SLICE(0xa6770bb4, 0x979f1129, 0xf44f2413, 0x33ef4e67, 0x67de9cce, 0xcfbd399c, 0x440b7579,
          0x8816eaf2),
    SLICE(0xccaa009e, 0x4225077d, 0x844a0efa, 0xd3e51bb5, 0x7cbb312b, 0xf9766256, 0x299dc2ed,
          0x533b85da),
};

uint32_t spw_record_checksum(uint32_t crc, const void *bytes, size_t count)
{
    const unsigned char *at = bytes;

    crc = ~crc;
    for (; count >= SLICES; count -= SLICES, at += SLICES) {
        uint32_t low, high;

        memcpy(&low, at, sizeof(low));
        memcpy(&high, at + sizeof(low), sizeof(high));
        low ^= crc;
        crc = tables[7][low & 0xff] ^ tables[6][low >> 8 & 0xff] ^ tables[5][low >> 16 & 0xff] ^
              tables[4][low >> 24] ^ tables[3][high & 0xff] ^ tables[2][high >> 8 & 0xff] ^
              tables[1][high >> 16 & 0xff] ^ tables[0][high >> 24];
    }
    for (; count > 0; count--, at++) {
        crc = (crc >> 8) ^ tables[0][(crc ^ *at) & 0xff];
    }
    return ~crc;
}
