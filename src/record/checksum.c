#include "record/checksum.h"

#include <string.h>

enum { SLICES = 8 };

/* Sarwate's table for one byte, and those of Intel's "slicing by 8" for eight bytes at once. */
static uint32_t tables[SLICES][256];

void spw_record_checksum_init(void)
{
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t crc = i;

        for (int bit = 0; bit < 8; bit++) {
            crc = (crc >> 1) ^ ((crc & 1) != 0 ? UINT32_C(0xedb88320) : 0);
        }
        tables[0][i] = crc;
    }
    for (int slice = 1; slice < SLICES; slice++) {
        for (uint32_t i = 0; i < 256; i++) {
            uint32_t crc = tables[slice - 1][i];

            tables[slice][i] = (crc >> 8) ^ tables[0][crc & 0xff];
        }
    }
}

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
