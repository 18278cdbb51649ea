/* Extents: the runs of addresses that tile an arena, and the lists they hang in.
 *
 * An extent is a block, a free extent (every byte backed), a hole (whole granules, none backed), or
 * a claim (a window taken out of the free space while it is being backed). Extents of one heap form
 * a doubly linked list in address order without gaps. Records live out of band, since device memory
 * cannot be read, in slabs that are kept until the pool goes. Caller holds the pool's lock. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct spw_stream_queue;

enum spw_extent_kind { SPW_EXTENT_BLOCK, SPW_EXTENT_FREE, SPW_EXTENT_HOLE, SPW_EXTENT_CLAIM };

/* Links of one extent in a list other than the address order. */
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
    uint32_t site;                  /* BLOCK: who is charged with it */
    bool host;                      /* FREE: in part on the host, so in no bin */
    uint32_t placed;                /* BLOCK: units of it that a rule placed on the host */
    union {
        struct {                            /* FREE; HOLE uses age only */
            struct spw_stream_queue *queue; /* whose pending work may still touch it */
            uint64_t seq;                   /* newest free of that queue inside it */
            struct spw_extent_link bin;     /* extents of like size */
            struct spw_extent_link age;     /* oldest first */
        };
        struct { /* BLOCK */
            uint64_t requested;
            uint64_t used; /* the queues' clock when it was last known to be used */
            uint64_t id;
            uint64_t stream_id;
            void *context;
            int32_t priority; /* the higher, the longer it stays on the device */
            uint8_t fixed;    /* enum spw_fixed: why it is never moved; 0: it may be */
            uint8_t rule;     /* of a policy that decided on it; 0: none */
            bool lazy;        /* it has no memory yet, and takes whole granules */
        };
    };
};

static inline uint64_t spw_pool_extent_end(const struct spw_extent *extent)
{
    return extent->address + extent->bytes;
}

/* What a block holds as it is counted: one that is lazy takes more addresses. */
static inline uint64_t spw_pool_extent_held(const struct spw_extent *block)
{
    return block->lazy ? (block->requested + 511) & ~UINT64_C(511) : block->bytes;
}

static inline bool spw_pool_extent_is_lazy(const struct spw_extent *extent)
{
    return extent->kind == SPW_EXTENT_BLOCK && extent->lazy;
}

/* A list by age: oldest first, appended at the end. */
struct spw_age_list {
    struct spw_extent *oldest, *newest;
};

/* Appends or takes out an extent by its age links. */
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

/* The records: a free list over slabs. */
struct spw_extent_slab;
struct spw_extent_store {
    struct spw_extent *unused;
    struct spw_extent_slab *slabs;
    size_t unused_count;
    size_t held; /* of the unused, kept back for an open claim */
};

/* The slow half of spw_pool_extent_reserve. */
bool spw_pool_extent_store_grow(struct spw_extent_store *store, size_t count);

/* Makes sure that `count` records beside the held ones can be had without failing: false when the
 * host has no memory. */
static inline bool spw_pool_extent_reserve(struct spw_extent_store *store, size_t count)
{
    return count + store->held <= store->unused_count ||
           spw_pool_extent_store_grow(store, count + store->held);
}

/* Takes a record; needs an earlier reserve. Contents are undefined. */
static inline struct spw_extent *spw_pool_extent_take(struct spw_extent_store *store)
{
    struct spw_extent *extent = store->unused;

    store->unused = extent->next;
    store->unused_count--;
    return extent;
}

/* Gives a record back. Until it is taken again it has no bytes. */
static inline void spw_pool_extent_give(struct spw_extent_store *store, struct spw_extent *extent)
{
    extent->bytes = 0;
    extent->next = store->unused;
    store->unused = extent;
    store->unused_count++;
}

/* Frees every record, used or not. */
void spw_pool_extent_store_fini(struct spw_extent_store *store);
