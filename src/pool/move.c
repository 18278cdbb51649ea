#include "pool/move.h"

#include <stdlib.h>

#include "pool/state.h"

/* ---- choosing ---- */

/* Blocks that could be moved, in the order in which they should be. */
struct candidate {
    const struct spw_extent *block;
    uint64_t used;
    int32_t priority;
};

static bool is_movable(const struct spw_pool *pool, const struct spw_extent *extent)
{
    return extent->kind == SPW_EXTENT_BLOCK ? extent->id > pool->fixed_id && extent->fixed == 0
                                            : extent->kind != SPW_EXTENT_CLAIM;
}

static int coldest_first(const void *a, const void *b)
{
    const struct candidate *left = a, *right = b;

    if (left->priority != right->priority) {
        return left->priority < right->priority ? -1 : 1;
    }
    if (left->used != right->used) {
        return left->used < right->used ? -1 : 1;
    }
    return left->block->address < right->block->address ? -1 : 1;
}

static int hottest_first(const void *a, const void *b)
{
    return -coldest_first(a, b);
}

/* Lists the blocks that qualify; *ret_candidates is the caller's to free. 0 when there are none, or
 * no memory for the list. */
static size_t list_candidates(const struct spw_pool *pool, const struct spw_move_wish *wish,
                              struct candidate **ret_candidates)
{
    struct candidate *candidates = malloc(pool->blocks.count * sizeof(*candidates));
    size_t count = 0;

    for (const struct spw_extent *e = spw_space_first_large(&pool->space);
         candidates != NULL && e != NULL; e = spw_space_next_large(&pool->space, e)) {
        if (e->kind == SPW_EXTENT_BLOCK && is_movable(pool, e) &&
            (wish->to == SPW_TIER_HOST || e->placed == 0) &&
            pool->lanes.clock - e->used >= wish->least_age) {
            candidates[count++] = (struct candidate){e, e->used, e->priority};
        }
    }
    if (candidates != NULL) {
        qsort(candidates, count, sizeof(*candidates),
              wish->to == SPW_TIER_HOST ? coldest_first : hottest_first);
    }
    *ret_candidates = candidates;
    return count;
}

/* Whether a granule may be moved as far as the neighbours of the block are concerned that lie on it
 * as well. */
static bool neighbours_agree(const struct spw_pool *pool, const struct spw_extent *block,
                             uint64_t address)
{
    uint64_t end = address + pool->config.granule_bytes;

    for (const struct spw_extent *e = block->prev; e != NULL && spw_extent_end(e) > address;
         e = e->prev) {
        if (!is_movable(pool, e)) {
            return false;
        }
    }
    for (const struct spw_extent *e = block->next; e != NULL && e->address < end; e = e->next) {
        if (!is_movable(pool, e)) {
            return false;
        }
    }
    return true;
}

/* Adds granules of a block to the move, up to `most` in all, and pins them. */
static void take_granules(struct spw_pool *pool, struct spw_move *move,
                          const struct spw_extent *block, size_t most)
{
    struct spw_backing *backing = &pool->backing;
    uint64_t at = spw_backing_down(backing, block->address);

    for (; at < spw_extent_end(block) && move->count < most; at += backing->granule_bytes) {
        size_t index = spw_backing_index(backing, at);
        struct spw_granule *granule = &backing->granules[index];

        if (granule->chunk == 0 || granule->tier == move->to || granule->broken ||
            granule->pinned || !neighbours_agree(pool, block, at)) {
            continue;
        }
        granule->pinned = true;
        move->items[move->count++] = (struct spw_move_item){.granule = index};
    }
}

static int by_granule(const void *a, const void *b)
{
    const struct spw_move_item *left = a, *right = b;

    return left->granule < right->granule ? -1 : left->granule > right->granule;
}

static void choose(struct spw_pool *pool, const struct spw_move_wish *wish)
{
    struct spw_move *move = &pool->move;
    uint64_t granules = (wish->bytes + pool->config.granule_bytes - 1) / pool->config.granule_bytes;
    size_t most = granules < SPW_MOVE_GRANULES ? (size_t)granules : SPW_MOVE_GRANULES;
    struct candidate *candidates;
    size_t count = list_candidates(pool, wish, &candidates);

    for (size_t i = 0; i < count && move->count < most; i++) {
        take_granules(pool, move, candidates[i].block, most);
    }
    free(candidates);
}

/* ---- beginning and ending ---- */

static uint64_t staged_at(const struct spw_pool *pool, size_t item)
{
    return pool->backing.staging + item * pool->config.granule_bytes;
}

static void unpin(struct spw_pool *pool, const struct spw_move_item *item)
{
    pool->backing.granules[item->granule].pinned = false;
}

/* Whether the limits let one more chunk of a tier be created. */
static bool may_create(const struct spw_pool *pool, enum spw_tier tier)
{
    const struct spw_counters *counters = pool->counters;
    uint64_t granule = pool->config.granule_bytes;

    return tier == SPW_TIER_HOST
               ? spw_counter_get(&counters->host_bytes) + granule <= pool->config.host_limit_bytes
               : spw_counter_get(&counters->committed_bytes) + granule <= pool->config.limit_bytes;
}

/* Gets a new chunk for each granule, or for as many as there is memory for. */
static void get_chunks(struct spw_pool *pool)
{
    struct spw_move *move = &pool->move;
    const struct spw_chunk_store *store = &pool->backing.tiers[move->to];
    size_t had = 0;

    if (move->to == SPW_TIER_DEVICE && store->spare_count < move->count) {
        spw_pool_settle(pool, NULL, true);
        (void)spw_space_steal(&pool->space, move->count - store->spare_count);
    }
    while (had < move->count &&
           (store->spare_count > 0 || (may_create(pool, move->to) &&
                                       spw_backing_create(&pool->backing, move->to) == SPW_OK))) {
        move->items[had++].chunk = spw_backing_hold(&pool->backing, move->to);
    }
    while (move->count > had) {
        unpin(pool, &move->items[--move->count]);
    }
}

static enum spw_err stage(struct spw_pool *pool)
{
    struct spw_move *move = &pool->move;
    enum spw_err err = SPW_OK;

    for (size_t i = 0; i < move->count && err == SPW_OK; i++) {
        err = pool->ops->map(pool->vm, staged_at(pool, i), pool->config.granule_bytes,
                             move->items[i].chunk - 1);
        move->items[i].staged = err == SPW_OK;
    }
    if (err == SPW_OK) {
        err = pool->ops->set_access(pool->vm, pool->backing.staging,
                                    move->count * pool->config.granule_bytes);
    }
    return err;
}

/* Unmaps runs of the staging window; what the seam keeps stays marked. */
static bool unstage(struct spw_pool *pool)
{
    struct spw_move *move = &pool->move;
    bool all = true;

    for (size_t i = 0, first; i < move->count;) {
        uint64_t bytes, done;

        if (!move->items[i].staged) {
            i++;
            continue;
        }
        for (first = i; i < move->count && move->items[i].staged; i++) {
        }
        done = bytes = (i - first) * pool->config.granule_bytes;
        if (pool->ops->unmap(pool->vm, staged_at(pool, first), bytes, pool->config.granule_bytes,
                             &done) == SPW_OK) {
            done = bytes;
        } else {
            all = false;
        }
        for (size_t k = first; k < first + (size_t)(done / pool->config.granule_bytes); k++) {
            move->items[k].staged = false;
        }
    }
    return all;
}

static void drop_fence(struct spw_pool *pool, void **fence)
{
    if (*fence != NULL) {
        pool->ops->drop(pool->vm, *fence);
        *fence = NULL;
    }
}

static bool end(struct spw_pool *pool)
{
    struct spw_move *move = &pool->move;
    enum spw_tier from = move->to == SPW_TIER_HOST ? SPW_TIER_DEVICE : SPW_TIER_HOST;

    if (!unstage(pool)) {
        return false;
    }
    drop_fence(pool, &move->drained);
    while (move->count > 0) {
        const struct spw_move_item *item = &move->items[--move->count];

        spw_backing_unhold(&pool->backing, item->committed ? from : move->to, item->chunk);
        unpin(pool, item);
    }
    return true;
}

void spw_move_drop(struct spw_pool *pool)
{
    pool->move.over = false;
    drop_fence(pool, &pool->move.fence);
    if (!end(pool)) {
        /* The seam keeps the mapping, and with it the memory. */
        for (size_t i = 0; i < pool->move.count; i++) {
            pool->move.items[i].staged = false;
        }
        (void)end(pool);
    }
}

enum spw_err spw_move_settle(struct spw_pool *pool)
{
    struct spw_move *move = &pool->move;

    if (!move->over) {
        return SPW_OK;
    }
    if (move->fence != NULL && pool->ops->query(pool->vm, move->fence) != SPW_OK) {
        return SPW_E_AGAIN;
    }
    drop_fence(pool, &move->fence);
    move->over = !end(pool);
    return move->over ? SPW_E_AGAIN : SPW_OK;
}

enum spw_err spw_pool_move_begin(struct spw_pool *pool, const struct spw_move_wish *wish)
{
    struct spw_move *move = &pool->move;
    enum spw_err err = SPW_OK;

    pthread_mutex_lock(&pool->lock);
    (void)spw_move_settle(pool);
    if (move->count > 0) {
        pthread_mutex_unlock(&pool->lock);
        return SPW_E_AGAIN;
    }
    if (pool->backing.lost > 0 && !spw_move_mend(pool)) {
        /* What is refused now would be refused to the next ones too. */
        pthread_mutex_unlock(&pool->lock);
        return SPW_E_AGAIN;
    }
    move->to = wish->to;
    choose(pool, wish);
    get_chunks(pool);
    if (move->count == 0) {
        err = SPW_E_NO_MEMORY;
    } else {
        qsort(move->items, move->count, sizeof(move->items[0]), by_granule);
        err = stage(pool);
        if (err != SPW_OK) {
            move->over = !end(pool);
        }
    }
    pthread_mutex_unlock(&pool->lock);
    return err;
}

enum spw_err spw_pool_move_end(struct spw_pool *pool)
{
    enum spw_err err;

    pthread_mutex_lock(&pool->lock);
    pool->move.over = pool->move.count > 0;
    err = spw_move_settle(pool);
    pthread_mutex_unlock(&pool->lock);
    return err;
}

/* ---- copying and waiting ---- */

enum spw_err spw_pool_move_copy(struct spw_pool *pool, bool after_all)
{
    struct spw_move *move = &pool->move;
    struct spw_vm_copy copies[SPW_MOVE_GRANULES];
    size_t count = 0;
    enum spw_err err;

    pthread_mutex_lock(&pool->lock);
    for (size_t i = 0, run; i < move->count; i += run) {
        run = spw_move_run(move, i);
        copies[count++] = (struct spw_vm_copy){.to = staged_at(pool, i),
                                               .from = spw_move_address(pool, &move->items[i]),
                                               .bytes = run * pool->config.granule_bytes};
    }
    err = pool->ops->copy(pool->vm, copies, count, after_all, &move->fence);
    pthread_mutex_unlock(&pool->lock);
    return err;
}

/* Asks a fence; it is dropped when it has completed. */
static enum spw_err ask(struct spw_pool *pool, void **fence)
{
    enum spw_err err = *fence == NULL ? SPW_OK : pool->ops->query(pool->vm, *fence);

    if (err == SPW_OK) {
        drop_fence(pool, fence);
    }
    return err;
}

enum spw_err spw_pool_move_poll(struct spw_pool *pool)
{
    enum spw_err err;

    pthread_mutex_lock(&pool->lock);
    err = ask(pool, &pool->move.fence);
    pthread_mutex_unlock(&pool->lock);
    return err;
}

enum spw_err spw_pool_move_drain(struct spw_pool *pool)
{
    const struct spw_stream all = {.id = SPW_STREAM_ALL};
    struct spw_move *move = &pool->move;
    enum spw_err err = SPW_OK;

    pthread_mutex_lock(&pool->lock);
    if (move->drained == NULL) {
        err = pool->ops->fence(pool->vm, &all, &move->drained);
    }
    if (err == SPW_OK) {
        err = ask(pool, &move->drained);
    }
    pthread_mutex_unlock(&pool->lock);
    return err;
}

/* ---- proof ---- */

enum spw_err spw_pool_move_hash(struct spw_pool *pool)
{
    struct spw_move *move = &pool->move;
    enum spw_err err = SPW_OK;

    pthread_mutex_lock(&pool->lock);
    for (size_t i = 0; i < move->count && err == SPW_OK; i++) {
        err = pool->ops->hash(pool->vm, spw_move_address(pool, &move->items[i]),
                              pool->config.granule_bytes, &move->items[i].hash);
    }
    pthread_mutex_unlock(&pool->lock);
    return err;
}

uint64_t spw_pool_move_verify(struct spw_pool *pool)
{
    struct spw_move *move = &pool->move;
    uint64_t wrong = 0;

    pthread_mutex_lock(&pool->lock);
    for (size_t i = 0; i < move->count && wrong == 0; i++) {
        uint64_t hash;

        if (pool->ops->hash(pool->vm, spw_move_address(pool, &move->items[i]),
                            pool->config.granule_bytes, &hash) == SPW_OK &&
            hash != move->items[i].hash) {
            wrong = spw_move_address(pool, &move->items[i]);
        }
    }
    pthread_mutex_unlock(&pool->lock);
    return wrong;
}

void spw_pool_fix_all(struct spw_pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    pool->fixed_id = pool->next_id;
    pthread_mutex_unlock(&pool->lock);
}
