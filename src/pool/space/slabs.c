#include "pool/space/slabs.h"

#include <stdlib.h>
#include <string.h>

#include "common/minmax.h"
#include "pool/extents/address_map.h"
#include "pool/space/space.h"

enum {
    MOST_SLABS = 4096,
    LEAST_BYTES = 64 << 20, /* smallest size of a shared slab, which is for several blocks */
    SHARE = 256,            /* a shared slab is 1/SHARE of the host's limit, if that is larger */
    ALONE = 4               /* a block of more than 1/ALONE of a shared slab gets a slab of its
                               own */
};

/* ---- which slab ---- */

static struct spw_slab *slab_of(const struct spw_slabs *slabs, uint64_t address)
{
    size_t count = atomic_load_explicit(&slabs->count, memory_order_acquire);

    for (size_t i = 0; i < count; i++) {
        struct spw_slab *slab = &slabs->table[i];

        if (address - atomic_load_explicit(&slab->address, memory_order_relaxed) <
            atomic_load_explicit(&slab->bytes, memory_order_acquire)) {
            return slab;
        }
    }
    return NULL;
}

bool spw_pool_slabs_own(const struct spw_slabs *slabs, uint64_t address)
{
    return slab_of(slabs, address) != NULL;
}

struct spw_extent *spw_pool_slabs_find(const struct spw_slabs *slabs, uint64_t address)
{
    const struct spw_slab *slab = slab_of(slabs, address);
    struct spw_extent *extent = slab != NULL ? slab->first : NULL;

    while (extent != NULL && spw_pool_extent_end(extent) <= address) {
        extent = extent->next;
    }
    return extent;
}

/* ---- free extents ---- */

static bool is_idle(const struct spw_extent *extent)
{
    return extent != NULL && extent->kind == SPW_EXTENT_FREE &&
           extent->queue->number == SPW_STREAM_QUEUE_IDLE;
}

/* If `host` is set for an extent in a slab, the extent is in no bin. */
static void enter_idle(struct spw_slabs *slabs, struct spw_extent *extent)
{
    if (!extent->host) {
        spw_pool_bins_insert(&slabs->idle, extent);
    }
}

static void leave_idle(struct spw_slabs *slabs, struct spw_extent *extent)
{
    if (!extent->host) {
        spw_pool_bins_remove(&slabs->idle, extent);
    }
}

/* Merges an idle neighbour into an extent that is in no index. The record of the extent is kept. */
static void merge(struct spw_slabs *slabs, struct spw_extent *extent, struct spw_extent *other)
{
    leave_idle(slabs, other);
    extent->bytes += other->bytes;
    if (other == extent->next) {
        extent->next = other->next;
    } else {
        extent->address = other->address;
        extent->prev = other->prev;
    }
    if (extent->next != NULL) {
        extent->next->prev = extent;
    }
    if (extent->prev != NULL) {
        extent->prev->next = extent;
    } else {
        slab_of(slabs, extent->address)->first = extent;
    }
    spw_pool_extent_give(&slabs->space->store, other);
}

/* Makes an extent idle after its work is complete. Merges it with idle neighbours. */
static void make_idle(struct spw_slabs *slabs, struct spw_extent *extent)
{
    extent->queue = spw_pool_stream_queue_idle(slabs->space->queues);
    if (is_idle(extent->next)) {
        merge(slabs, extent, extent->next);
    }
    if (is_idle(extent->prev)) {
        merge(slabs, extent, extent->prev);
    }
    enter_idle(slabs, extent);
}

/* Makes pending extents idle when their work is known to be complete. */
static void release_completed(struct spw_slabs *slabs)
{
    struct spw_age_list *pending = &slabs->pending;

    for (struct spw_extent *e = pending->oldest, *next; e != NULL; e = next) {
        next = e->age.next;
        if (spw_pool_stream_queue_passed(slabs->space->queues, e->queue->number, e->seq)) {
            spw_pool_age_remove(pending, e);
            make_idle(slabs, e);
        }
    }
}

static struct spw_extent *better(struct spw_extent *best, struct spw_extent *extent, uint64_t bytes)
{
    return extent->bytes >= bytes && (best == NULL || extent->bytes < best->bytes) ? extent : best;
}

/* Returns true if blocks of a context may be in the slab. */
static bool serves(const struct spw_slab *slab, const void *context)
{
    return !slab->gone && (slab->shared || slab->context == context);
}

/* Returns `best`, or a smaller extent that also fits, is idle, is in no bin, and is for this
 * context. */
static struct spw_extent *best_of_context(const struct spw_slabs *slabs, uint64_t bytes,
                                          const void *context, struct spw_extent *best)
{
    for (size_t i = 0; i < atomic_load(&slabs->count); i++) {
        const struct spw_slab *slab = &slabs->table[i];
        bool its_own = serves(slab, context) && !slab->shared;

        for (struct spw_extent *e = its_own ? slab->first : NULL; e != NULL; e = e->next) {
            best = is_idle(e) ? better(best, e, bytes) : best;
        }
    }
    return best;
}

/* Takes the smallest extent that fits out of its index. The extent is idle, or belongs to the same
 * queue. */
static struct spw_extent *take_best(struct spw_slabs *slabs, uint64_t bytes,
                                    const struct spw_stream_queue *queue, const void *context)
{
    struct spw_extent *best = spw_pool_bins_best(&slabs->idle, bytes);

    best = best_of_context(slabs, bytes, context, best);
    for (struct spw_extent *e = slabs->pending.oldest; queue != NULL && e != NULL;
         e = e->age.next) {
        if (e->queue == queue && (!e->host || serves(slab_of(slabs, e->address), context))) {
            best = better(best, e, bytes);
        }
    }
    if (best != NULL && is_idle(best)) {
        leave_idle(slabs, best);
    } else if (best != NULL) {
        spw_pool_age_remove(&slabs->pending, best);
    }
    return best;
}

/* Turns the lower part of an extent that is in no index into the block. The rest stays free. */
static struct spw_extent *cut(struct spw_slabs *slabs, struct spw_extent *extent, uint64_t bytes)
{
    if (extent->bytes > bytes) {
        struct spw_extent *rest = spw_pool_extent_take(&slabs->space->store);

        *rest = *extent;
        rest->address += bytes;
        rest->bytes -= bytes;
        rest->prev = extent;
        if (rest->next != NULL) {
            rest->next->prev = rest;
        }
        extent->next = rest;
        extent->bytes = bytes;
        if (is_idle(rest)) {
            enter_idle(slabs, rest);
        } else {
            spw_pool_age_append(&slabs->pending, rest);
        }
    }
    extent->kind = SPW_EXTENT_BLOCK;
    return extent;
}

/* ---- slabs ---- */

static void count(struct spw_slabs *slabs, struct spw_slab *slab, uint64_t bytes)
{
    uint64_t before = atomic_load(&slab->bytes);

    atomic_store_explicit(&slab->bytes, bytes, memory_order_release);
    slabs->bytes += bytes - before;
    spw_pool_backing_count_host(slabs->space->backing, (int64_t)(bytes - before), 0);
}

/* Releases a slab whose only extent is in no index. Other threads may be reading the table. */
static void drop(struct spw_slabs *slabs, struct spw_extent *extent)
{
    struct spw_vm *vm = slabs->space->backing->vm;
    struct spw_slab *slab = slab_of(slabs, extent->address);

    (void)vm->ops->unpin(vm, slab->memory);
    slab->first = NULL;
    count(slabs, slab, 0);
    spw_pool_extent_give(&slabs->space->store, extent);
}

/* Releases a slab that consists of one idle extent. */
static enum spw_err give_back(struct spw_slabs *slabs, struct spw_slab *slab)
{
    struct spw_vm *vm = slabs->space->backing->vm;
    enum spw_err err = slab->gone ? SPW_OK : vm->ops->unpin(vm, slab->memory);

    if (err == SPW_OK) {
        leave_idle(slabs, slab->first);
        spw_pool_extent_give(&slabs->space->store, slab->first);
        slab->first = NULL;
        count(slabs, slab, 0);
    }
    return err;
}

uint64_t spw_pool_slabs_trim(struct spw_slabs *slabs)
{
    uint64_t before = slabs->bytes;

    release_completed(slabs);
    for (size_t i = 0; i < atomic_load(&slabs->count); i++) {
        struct spw_slab *slab = &slabs->table[i];

        if (is_idle(slab->first) && slab->first->next == NULL && give_back(slabs, slab) != SPW_OK) {
            break;
        }
    }
    return before - slabs->bytes;
}

static struct spw_slab *vacant(struct spw_slabs *slabs)
{
    size_t used = atomic_load(&slabs->count);

    for (size_t i = 0; i < used; i++) {
        if (slabs->table[i].first == NULL) {
            return &slabs->table[i];
        }
    }
    if (used == MOST_SLABS) {
        return NULL;
    }
    atomic_store_explicit(&slabs->count, used + 1, memory_order_release);
    return &slabs->table[used];
}

/* Returns the size of a new slab for a block; 0 if the limit leaves no room. */
static uint64_t size_for(const struct spw_slabs *slabs, uint64_t bytes)
{
    const struct spw_backing *backing = slabs->space->backing;
    uint64_t limit = backing->stock.limits[SPW_TIER_HOST], granule = backing->granule_bytes;
    uint64_t held = spw_counter_get(&backing->counters->host_bytes);
    uint64_t left = held < limit ? limit - held : 0;
    uint64_t shared = limit / SHARE > LEAST_BYTES ? limit / SHARE / granule * granule : LEAST_BYTES;
    uint64_t alone = (bytes + granule - 1) / granule * granule;

    if (bytes <= shared / ALONE && shared <= left) {
        return shared;
    }
    return alone <= left ? alone : bytes <= left ? bytes : 0;
}

/* Allocates the memory of a slab of *size bytes. If that is refused, and the block needs less,
 * tries a smaller slab. */
static bool pin(struct spw_slabs *slabs, void *context, uint64_t bytes, uint64_t *size,
                struct spw_vm_pinned *ret_pinned)
{
    struct spw_backing *backing = slabs->space->backing;
    struct spw_vm *vm = backing->vm;
    enum spw_err err = vm->ops->pin(vm, context, *size, ret_pinned);

    if (err == SPW_E_NO_MEMORY) {
        *size = spw_min(*size, spw_pool_backing_up(backing, bytes));
        err = vm->ops->pin(vm, context, *size, ret_pinned);
        if (err == SPW_E_NO_MEMORY) {
            spw_pool_stock_note_wall(backing->counters);
        }
    }
    return err == SPW_OK;
}

/* Creates a slab for a block, and returns its only extent, which is in no index. Returns NULL if
 * there is no memory. */
static struct spw_extent *add_slab(struct spw_slabs *slabs, uint64_t bytes, void *context)
{
    uint64_t size = size_for(slabs, bytes);
    struct spw_slab *slab = size > 0 ? vacant(slabs) : NULL;
    struct spw_vm_pinned pinned;
    struct spw_extent *extent;

    if (slab == NULL || !pin(slabs, context, bytes, &size, &pinned)) {
        return NULL;
    }
    slab->memory = pinned.memory;
    slab->context = pinned.context;
    slab->shared = pinned.lasting;
    slab->gone = false;
    extent = spw_pool_extent_take(&slabs->space->store);
    *extent = (struct spw_extent){.address = pinned.address,
                                  .bytes = size,
                                  .kind = SPW_EXTENT_FREE,
                                  .heap = SPW_HEAP_SLAB,
                                  .host = !slab->shared,
                                  .queue = spw_pool_stream_queue_idle(slabs->space->queues)};
    slab->first = extent;
    atomic_store(&slab->address, pinned.address);
    count(slabs, slab, size);
    return extent;
}

enum spw_err spw_pool_slabs_open(struct spw_slabs *slabs)
{
    struct spw_vm *vm = slabs->space->backing->vm;
    struct spw_extent *extent = NULL;
    enum spw_err err = SPW_E_METADATA_NOMEM;

    if (slabs->open) {
        return SPW_OK;
    }
    if (slabs->table == NULL) {
        slabs->table = calloc(MOST_SLABS, sizeof(*slabs->table));
    }
    if (slabs->table != NULL && spw_pool_extent_reserve(&slabs->space->store, 1)) {
        extent = add_slab(slabs, slabs->space->backing->granule_bytes / ALONE, NULL);
        err = extent == NULL ? SPW_E_NO_MEMORY
                             : vm->ops->probe_pinned(vm, extent->address, extent->bytes);
    }
    if (err == SPW_OK) {
        slabs->open = true;
        enter_idle(slabs, extent);
    } else if (extent != NULL) {
        drop(slabs, extent);
    }
    return err;
}

/* ---- blocks ---- */

enum spw_err spw_pool_slabs_alloc(struct spw_slabs *slabs, uint64_t bytes,
                                  const struct spw_stream_queue *queue, void *context,
                                  struct spw_extent **ret_block)
{
    struct spw_extent *extent;

    if (!spw_pool_extent_reserve(&slabs->space->store, 2)) {
        return SPW_E_METADATA_NOMEM;
    }
    release_completed(slabs);
    extent = take_best(slabs, bytes, queue, context);
    if (extent == NULL) {
        extent = add_slab(slabs, bytes, context);
    }
    if (extent == NULL && spw_pool_slabs_trim(slabs) > 0) {
        extent = add_slab(slabs, bytes, context); /* trimming has made room */
    }
    if (extent == NULL) {
        return SPW_E_NO_MEMORY;
    }
    *ret_block = cut(slabs, extent, bytes);
    slabs->live_bytes += bytes;
    spw_pool_backing_count_host(slabs->space->backing, 0, (int64_t)bytes);
    return SPW_OK;
}

void spw_pool_slabs_free(struct spw_slabs *slabs, struct spw_extent *block,
                         struct spw_stream_queue *queue)
{
    slabs->live_bytes -= block->bytes;
    spw_pool_backing_count_host(slabs->space->backing, 0, -(int64_t)block->bytes);
    block->kind = SPW_EXTENT_FREE;
    block->queue = queue;
    block->seq = queue->seq;
    if (is_idle(block)) {
        make_idle(slabs, block);
    } else {
        spw_pool_age_append(&slabs->pending, block);
    }
}

/* ---- the end, and the check ---- */

/* Takes the free extents of a slab out of their indexes. They will not be used again. */
static void end_slab(struct spw_slabs *slabs, struct spw_slab *slab)
{
    struct spw_stream_queue *idle = spw_pool_stream_queue_idle(slabs->space->queues);

    for (struct spw_extent *e = slab->first; e != NULL; e = e->next) {
        if (is_idle(e)) {
            leave_idle(slabs, e);
        } else if (e->kind == SPW_EXTENT_FREE) {
            spw_pool_age_remove(&slabs->pending, e);
            e->queue = idle;
        }
        e->host = true;
    }
    for (struct spw_extent *e = slab->first; e != NULL; e = e->next) {
        while (is_idle(e) && is_idle(e->next)) {
            merge(slabs, e, e->next);
        }
    }
    slab->gone = true;
}

void spw_pool_slabs_end_context(struct spw_slabs *slabs, const void *context, bool release)
{
    for (size_t i = 0; i < atomic_load(&slabs->count); i++) {
        struct spw_slab *slab = &slabs->table[i];

        if (slab->first == NULL || slab->gone || (context != NULL && slab->context != context)) {
            continue;
        }
        end_slab(slabs, slab);
        if (release && is_idle(slab->first) && slab->first->next == NULL) {
            (void)give_back(slabs, slab);
        }
    }
}

void spw_pool_slabs_fini(struct spw_slabs *slabs, bool release)
{
    struct spw_backing *backing = slabs->space->backing;

    for (size_t i = 0; i < atomic_load(&slabs->count); i++) {
        if (release && slabs->table[i].first != NULL && !slabs->table[i].gone) {
            (void)backing->vm->ops->unpin(backing->vm, slabs->table[i].memory);
        }
    }
    spw_pool_backing_count_host(backing, -(int64_t)slabs->bytes, -(int64_t)slabs->live_bytes);
    free(slabs->table);
    memset(slabs, 0, sizeof(*slabs)); /* too large for a stack */
}

static const char *check_slab(const struct spw_address_map *blocks, const struct spw_slab *slab,
                              uint64_t *block_bytes, uint64_t *block_count)
{
    uint64_t expected = atomic_load(&slab->address);

    for (const struct spw_extent *e = slab->first; e != NULL; e = e->next) {
        bool block = e->kind == SPW_EXTENT_BLOCK;

        if (e->address != expected || e->heap != SPW_HEAP_SLAB ||
            e->host != (slab->gone || !slab->shared) || (e->next != NULL && e->next->prev != e)) {
            return "the extents of a slab do not tile it";
        }
        if (block ? spw_pool_address_map_get(blocks, e->address) != e
                  : is_idle(e) && is_idle(e->next)) {
            return "a block of a slab is not found, or idle neighbours have not joined";
        }
        *block_bytes += block ? e->bytes : 0;
        *block_count += block;
        expected = spw_pool_extent_end(e);
    }
    return expected == atomic_load(&slab->address) + atomic_load(&slab->bytes)
               ? NULL
               : "the extents of a slab do not fill it";
}

const char *spw_pool_slabs_check(const struct spw_slabs *slabs,
                                 const struct spw_address_map *blocks, uint64_t *block_bytes,
                                 uint64_t *block_count)
{
    uint64_t own_bytes = 0, own_count = 0, bytes = 0;
    const char *broken = NULL;

    for (size_t i = 0; i < atomic_load(&slabs->count) && broken == NULL; i++) {
        bytes += atomic_load(&slabs->table[i].bytes);
        if (slabs->table[i].first != NULL) {
            broken = check_slab(blocks, &slabs->table[i], &own_bytes, &own_count);
        }
    }
    if (broken == NULL && (bytes != slabs->bytes || own_bytes != slabs->live_bytes)) {
        broken = "the bytes of the slabs are miscounted";
    }
    *block_bytes += own_bytes;
    *block_count += own_count;
    return broken;
}
