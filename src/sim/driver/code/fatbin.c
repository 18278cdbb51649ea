#include "sim/driver/code/fatbin.h"

#include <string.h>

enum { KIND_PTX = 1, KIND_CUBIN = 2 };

enum {
    FLAG_LZ4 = 0x2000,
    FLAG_ZSTD = 0x8000,
    FLAG_EXACT = 0x100000, /* for this architecture only: sm_90a */
};

/* The known part of an entry's header. The bytes that follow, up to head_bytes, are skipped. */
struct entry_head {
    uint16_t kind;
    uint16_t version;
    uint32_t head_bytes;
    uint64_t payload_bytes; /* with padding */
    uint32_t packed_bytes;  /* without padding; 0: not compressed */
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

static bool is_exact(const struct entry_head *head)
{
    return (head->flags & FLAG_EXACT) != 0;
}

/* The rank of a cubin for a device: higher is better; 0: it cannot run there. */
static unsigned int rank_of_cubin(const struct entry_head *head, unsigned int arch)
{
    if (head->arch / 10 != arch / 10 || head->arch > arch ||
        (is_exact(head) && head->arch != arch)) {
        return 0;
    }
    return head->arch * 2 + is_exact(head);
}

/* True if the driver can compile PTX of an entry for a device. */
static bool can_compile(const struct entry_head *head, unsigned int arch)
{
    return is_exact(head) ? head->arch == arch : head->arch <= arch;
}

static bool read_packed(const unsigned char *payload, const struct entry_head *head,
                        struct sim_packed *ret_packed)
{
    enum sim_packing packing = packing_of(head);
    bool is_plain = packing == SIM_PACKING_NONE;

    if (!is_plain && head->packed_bytes > head->payload_bytes) {
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

/* The entries of a container. False if the data are not a container, or only a part of one. */
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

/* The state of a search for code. */
struct search {
    struct sim_fatbin_choice choice;
    unsigned int arch, best; /* architecture of the device; rank of the best cubin */
    unsigned int ptx;        /* latest PTX that suits; 0: none */
    bool any;                /* some code was found */
};

static void take_cubin(struct search *search, const struct entry_head *head,
                       const unsigned char *payload)
{
    unsigned int rank = rank_of_cubin(head, search->arch);
    struct sim_packed packed;

    if (!read_packed(payload, head, &packed)) {
        return;
    }
    search->any = true;
    if (search->choice.cubin.data == NULL || rank > search->best) {
        search->choice.cubin = packed;
        search->choice.binary = search->choice.ptx = rank > 0 ? head->arch : 0;
        search->best = rank;
    }
}

static void take_entry(struct search *search, const struct entry_head *head,
                       const unsigned char *payload)
{
    if (head->kind == KIND_CUBIN) {
        take_cubin(search, head, payload);
    } else if (head->kind == KIND_PTX) {
        search->any = true;
        if (can_compile(head, search->arch) && head->arch > search->ptx) {
            search->ptx = head->arch;
        }
    }
}

static struct sim_fatbin_choice conclude(const struct search *search)
{
    struct sim_fatbin_choice choice = search->choice;

    if (search->best == 0 && search->ptx > 0) {
        choice.binary = search->arch;
        choice.ptx = search->ptx;
    }
    choice.runs = !search->any || search->best > 0 || search->ptx > 0;
    return choice;
}

struct sim_fatbin_choice sim_fatbin_choose(const void *data, size_t size, unsigned int arch)
{
    struct search search = {.arch = arch};
    const unsigned char *at;
    size_t left = 0;

    if (!find_entries(data, size, &at, &left)) {
        return conclude(&search);
    }
    while (left >= sizeof(struct entry_head)) {
        struct entry_head head;

        memcpy(&head, at, sizeof(head));
        if (head.head_bytes < sizeof(head) || head.head_bytes > left ||
            head.payload_bytes > left - head.head_bytes) {
            break;
        }
        take_entry(&search, &head, at + head.head_bytes);
        at += head.head_bytes + head.payload_bytes;
        left -= head.head_bytes + head.payload_bytes;
    }
    return conclude(&search);
}
