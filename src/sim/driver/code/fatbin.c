#include "sim/driver/code/fatbin.h"

#include <string.h>

enum { KIND_CUBIN = 2 };

enum {
    FLAG_LZ4 = 0x2000,
    FLAG_ZSTD = 0x8000,
    FLAG_EXACT = 0x100000, /* for this architecture and no later one: sm_90a */
};

/* The head of an entry as far as it is known; what follows up to head_bytes is skipped. */
struct entry_head {
    uint16_t kind;
    uint16_t version;
    uint32_t head_bytes;
    uint64_t payload_bytes; /* with padding */
    uint32_t packed_bytes;  /* without; 0: not compressed */
    uint32_t unknown;
    uint16_t minor;
    uint16_t major;
    uint32_t arch;
    uint32_t name_offset;
    uint32_t name_bytes;
    uint64_t flags;
    uint64_t unknown2;
    uint64_t full_bytes; /* uncompressed */
};

static enum sim_packing packing_of(const struct entry_head *head)
{
    if ((head->flags & FLAG_ZSTD) != 0) {
        return SIM_PACKING_ZSTD;
    }
    return (head->flags & FLAG_LZ4) != 0 ? SIM_PACKING_LZ4 : SIM_PACKING_NONE;
}

/* How well a cubin suits a device; 0: it would not run there. */
static unsigned int rank_of(const struct entry_head *head, unsigned int arch)
{
    bool exact = (head->flags & FLAG_EXACT) != 0;

    if (head->arch / 10 != arch / 10 || head->arch > arch || (exact && head->arch != arch)) {
        return 0;
    }
    return head->arch * 2 + exact;
}

static bool read_packed(const unsigned char *payload, const struct entry_head *head,
                        struct sim_packed *ret_packed)
{
    enum sim_packing packing = packing_of(head);
    bool is_plain = packing == SIM_PACKING_NONE;

    if (head->kind != KIND_CUBIN || (!is_plain && head->packed_bytes > head->payload_bytes)) {
        return false;
    }
    *ret_packed = (struct sim_packed){
        .data = payload,
        .bytes = is_plain ? head->payload_bytes : head->packed_bytes,
        .cubin_bytes = is_plain ? head->payload_bytes : head->full_bytes,
        .packing = packing,
    };
    return ret_packed->bytes > 0;
}

/* The entries' part of a container; false if it is none, or longer than what is there. */
static bool find_entries(const void *data, size_t size, const unsigned char **ret_begin,
                         size_t *ret_bytes)
{
    struct sim_fatbin_head head;

    if (size < sizeof(head)) {
        return false;
    }
    memcpy(&head, data, sizeof(head));
    if (head.magic != SIM_FATBIN_MAGIC || head.head_bytes < sizeof(head) ||
        head.head_bytes > size || head.payload_bytes > size - head.head_bytes) {
        return false;
    }
    *ret_begin = (const unsigned char *)data + head.head_bytes;
    *ret_bytes = head.payload_bytes;
    return true;
}

bool sim_fatbin_choose(const void *data, size_t size, unsigned int arch,
                       struct sim_packed *ret_packed)
{
    const unsigned char *at;
    size_t left;
    unsigned int best = 0;
    bool found = false;

    if (!find_entries(data, size, &at, &left)) {
        return false;
    }
    while (left >= sizeof(struct entry_head)) {
        struct entry_head head;
        struct sim_packed packed;

        memcpy(&head, at, sizeof(head));
        if (head.head_bytes < sizeof(head) || head.head_bytes > left ||
            head.payload_bytes > left - head.head_bytes) {
            break;
        }
        if (read_packed(at + head.head_bytes, &head, &packed) &&
            (!found || rank_of(&head, arch) > best)) {
            *ret_packed = packed;
            best = rank_of(&head, arch);
            found = true;
        }
        at += head.head_bytes + head.payload_bytes;
        left -= head.head_bytes + head.payload_bytes;
    }
    return found;
}
