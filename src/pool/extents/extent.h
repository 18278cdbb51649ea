/* Records of runs of addresses, and indexes that find them. It does not know chunks and the device.
 *
 *   extent       the records, and lists of them
 *   bins         free extents by size
 *   shelf        the free extents of one queue in one heap: a list, or bins
 *   address_map  blocks by address */

/* Extents: runs of addresses. The extents of an arena cover it without gaps, and lists hold them.
 *
 * There are four kinds of extents. A block is allocated. A free extent is free, and every byte is
 * backed. A hole consists of whole granules without backing. A claim is a window of the free space
 * that is being backed, or addresses on broken granules. The extents of one heap form a doubly
 * linked list in address order. Records are in host memory, because device memory cannot be read.
 * They stay allocated until the pool is destroyed. Not thread-safe: the caller holds the pool's
 * lock. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pool/request.h"

struct spw_stream_queue;

/* Classes of heaps. Small blocks are separate from large blocks, so that a long-lived small block
 * does not keep a granule backed between large blocks. Blocks that are placed on the host have
 * their own heap, which is backed by chunks of the host. Each numbered heap has its own
 * addresses. */
enum spw_heap_class {
    SPW_HEAP_SMALL,
    SPW_HEAP_LARGE,
    SPW_HEAP_HOST,
    SPW_HEAP_NUMBERED, /* the first of SPW_POOL_HEAPS numbered heaps */
    SPW_HEAP_COUNT = SPW_HEAP_NUMBERED + SPW_POOL_HEAPS
};

/* The value of `heap` for an extent in a slab. */
enum { SPW_HEAP_SLAB = 0xff };

enum spw_extent_kind { SPW_EXTENT_BLOCK, SPW_EXTENT_FREE, SPW_EXTENT_HOLE, SPW_EXTENT_CLAIM };

/* Links of an extent in a list that is not in address order. */
struct spw_extent_link {
    struct spw_extent *prev, *next;
};

struct spw_extent {
    uint64_t address;
    uint64_t bytes;
    struct spw_extent *prev, *next; /* neighbours in address order */
    uint8_t kind;                   /* enum spw_extent_kind */
    uint8_t heap;                   /* enum spw_heap_class */
    bool ordered;                   /* BLOCK: allocated on a stream */
    uint32_t site;                  /* BLOCK: call site that is charged */
    bool host;                      /* FREE: partly on the host, and therefore in no bin */
    uint32_t placed;                /* BLOCK: number of units that a placement allocated on the
                                       host */
    union {
        struct {                            /* FREE; a HOLE uses only `age` */
            struct spw_stream_queue *queue; /* pending work of this queue may use the extent */
            uint64_t seq;                   /* number of the newest free of the queue inside the
                                               extent */
            struct spw_extent_link bin;     /* links to extents of similar size */
            struct spw_extent_link age;     /* links to older and newer extents */
        };
        struct { /* BLOCK */
            uint64_t requested;
            uint64_t used; /* the pool's clock at the block's last known use */
            uint64_t id;
            uint64_t stream_id;
            void *context;
            int32_t priority; /* blocks of higher priority stay on the device longer */
            uint8_t fixed;    /* bits of enum spw_fixed_reason; 0: the block may be moved */
            uint8_t account;  /* number of the account, from 1; 0: none */
            bool lazy;        /* has no memory yet, and occupies whole granules */
            bool uncounted;   /* lazy, and does not count as live */
        };
    };
};

static inline uint64_t spw_pool_extent_end(const struct spw_extent *extent)
{
    return extent->address + extent->bytes;
}

/* Returns the number of bytes that a block is counted for. A lazy block occupies more addresses
 * than that; an uncounted block is counted for 0 bytes. */
static inline uint64_t spw_pool_extent_held(const struct spw_extent *block)
{
    if (block->lazy) {
        return block->uncounted ? 0 : (block->requested + 511) & ~UINT64_C(511);
    }
    return block->bytes;
}

static inline bool spw_pool_extent_is_lazy(const struct spw_extent *extent)
{
    return extent->kind == SPW_EXTENT_BLOCK && extent->lazy;
}

/* A list in the order of age, with the oldest first. */
struct spw_age_list {
    struct spw_extent *oldest, *newest;
};

/* Append and remove an extent by its age links. */
static inline void spw_pool_age_append(struct spw_age_list *list, struct spw_extent *extent)
{
    extent->age.next = NULL;
    extent->age.prev = list->newest;
    if (list->newest != NULL) {
        list->newest->age.next = extent;
    } else {
        list->oldest = extent;
    }
    list->newest = extent;
}

static inline void spw_pool_age_remove(struct spw_age_list *list, struct spw_extent *extent)
{
    if (extent->age.prev != NULL) {
        extent->age.prev->age.next = extent->age.next;
    } else {
        list->oldest = extent->age.next;
    }
    if (extent->age.next != NULL) {
        extent->age.next->age.prev = extent->age.prev;
    } else {
        list->newest = extent->age.prev;
    }
}

/* A heap: a range of the arena. Extents cover it from `base` to `frontier` without gaps. Addresses
 * behind the frontier were never used. */
struct spw_heap {
    uint64_t base, end, frontier;
    struct spw_extent *first, *last;
    struct spw_age_list holes;
};

/* The extent records: a free list of records in slabs. */
struct spw_extent_slab;
struct spw_extent_store {
    struct spw_extent *unused;
    struct spw_extent_slab *slabs;
    size_t unused_count;
    size_t held; /* unused records that are reserved for an open claim */
};

/* The slow half of spw_pool_extent_reserve. */
bool spw_pool_extent_store_grow(struct spw_extent_store *store, size_t count);

/* Makes sure that `count` records can be taken, without the held ones. Returns false if the process
 * has no memory. */
static inline bool spw_pool_extent_reserve(struct spw_extent_store *store, size_t count)
{
    return count + store->held <= store->unused_count ||
           spw_pool_extent_store_grow(store, count + store->held);
}

/* Takes a record. Must follow a successful reserve. The content of the record is undefined. */
static inline struct spw_extent *spw_pool_extent_take(struct spw_extent_store *store)
{
    struct spw_extent *extent = store->unused;

    store->unused = extent->next;
    store->unused_count--;
    return extent;
}

/* Gives a record back. `bytes` is 0 until the record is taken again. */
static inline void spw_pool_extent_give(struct spw_extent_store *store, struct spw_extent *extent)
{
    extent->bytes = 0;
    extent->next = store->unused;
    store->unused = extent;
    store->unused_count++;
}

/* Frees every record, used or not. */
void spw_pool_extent_store_fini(struct spw_extent_store *store);
