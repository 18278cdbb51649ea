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

    for (const struct spw_extent *e = spw_pool_space_first_large(&pool->space);
         candidates != NULL && e != NULL; e = spw_pool_space_next_large(&pool->space, e)) {
        if (e->kind == SPW_EXTENT_BLOCK && spw_pool_move_can(pool, e) &&
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

    for (const struct spw_extent *e = block->prev; e != NULL && spw_pool_extent_end(e) > address;
         e = e->prev) {
        if (!spw_pool_move_can(pool, e)) {
            return false;
        }
    }
    for (const struct spw_extent *e = block->next; e != NULL && e->address < end; e = e->next) {
        if (!spw_pool_move_can(pool, e)) {
            return false;
        }
    }
    return true;
}

/* Adds the granule of a block at `at` to the move, if it may be moved, and pins it. */
static void take_granule(struct spw_pool *pool, struct spw_move *move,
                         const struct spw_extent *block, uint64_t at, enum spw_tier to)
{
    size_t index = spw_pool_backing_index(&pool->backing, at);
    struct spw_granule *granule = &pool->backing.granules[index];

    if (granule->chunk != 0 && granule->tier != to && !granule->broken && !granule->pinned &&
        neighbours_agree(pool, block, at)) {
        granule->pinned = true;
        move->items[move->count++] = (struct spw_move_item){.granule = index, .to = to};
    }
}

/* The same for every granule of a block, up to `most` in all. */
static void take_granules(struct spw_pool *pool, struct spw_move *move,
                          const struct spw_extent *block, size_t most, enum spw_tier to)
{
    uint64_t at = spw_pool_backing_down(&pool->backing, block->address);

    for (; at < spw_pool_extent_end(block) && move->count < most;
         at += pool->config.granule_bytes) {
        take_granule(pool, move, block, at, to);
    }
}

static int by_granule(const void *a, const void *b)
{
    const struct spw_move_item *left = a, *right = b;

    return left->granule < right->granule ? -1 : left->granule > right->granule;
}

/* Takes what the caller has chosen, as far as it is there still. */
static void take_places(struct spw_pool *pool, struct spw_move *move,
                        const struct spw_move_wish *wish)
{
    for (size_t i = 0; i < wish->count && move->count < SPW_MOVE_GRANULES; i++) {
        const struct spw_move_place *place = &wish->places[i];
        const struct spw_extent *block = spw_pool_address_map_get(&pool->blocks, place->block);

        if (block != NULL && spw_pool_move_can(pool, block) &&
            (place->to == SPW_TIER_HOST || block->placed == 0) &&
            place->granule < spw_pool_extent_end(block) &&
            place->granule + pool->config.granule_bytes > block->address) {
            take_granule(pool, move, block, place->granule, place->to);
        }
    }
}

static void choose(struct spw_pool *pool, struct spw_move *move, const struct spw_move_wish *wish)
{
    uint64_t granules = (wish->bytes + pool->config.granule_bytes - 1) / pool->config.granule_bytes;
    size_t most = granules < SPW_MOVE_GRANULES ? (size_t)granules : SPW_MOVE_GRANULES;
    struct candidate *candidates;
    size_t count;

    if (wish->places != NULL) {
        take_places(pool, move, wish);
        return;
    }
    count = list_candidates(pool, wish, &candidates);
    for (size_t i = 0; i < count && move->count < most; i++) {
        take_granules(pool, move, candidates[i].block, most, wish->to);
    }
    free(candidates);
}

/* ---- beginning and ending ---- */

static uint64_t staged_at(const struct spw_pool *pool, const struct spw_move *move, size_t item)
{
    return move->staging + item * pool->config.granule_bytes;
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

/* Takes free memory of the device from elsewhere if there are not enough spare chunks. */
static void find_spare(struct spw_pool *pool, const struct spw_move *move)
{
    size_t wanted = 0, spare = spw_pool_backing_spare(&pool->backing);

    for (size_t i = 0; i < move->count; i++) {
        wanted += move->items[i].to == SPW_TIER_DEVICE;
    }
    if (wanted > spare) {
        spw_pool_settle(pool, NULL, true);
        (void)spw_pool_space_steal(&pool->space, wanted - spare);
    }
}

/* Gets a new chunk for each granule, or for as many as there is memory for. */
static void get_chunks(struct spw_pool *pool, struct spw_move *move)
{
    bool full[SPW_TIER_COUNT] = {false};
    size_t had = 0;

    find_spare(pool, move);
    for (size_t i = 0; i < move->count; i++) {
        struct spw_move_item item = move->items[i];

        if (pool->backing.tiers[item.to].spare_count == 0 && !full[item.to]) {
            full[item.to] = !may_create(pool, item.to) ||
                            spw_pool_backing_create(&pool->backing, item.to) != SPW_OK;
        }
        if (pool->backing.tiers[item.to].spare_count > 0) {
            item.chunk = spw_pool_backing_hold(&pool->backing, item.to);
            move->items[had++] = item;
        } else {
            unpin(pool, &item);
        }
    }
    move->count = had;
}

static enum spw_err stage(struct spw_pool *pool, struct spw_move *move)
{
    enum spw_err err = SPW_OK;

    for (size_t i = 0; i < move->count && err == SPW_OK; i++) {
        err = pool->ops->map(pool->vm, staged_at(pool, move, i), pool->config.granule_bytes,
                             move->items[i].chunk - 1);
        move->items[i].staged = err == SPW_OK;
    }
    if (err == SPW_OK) {
        err = pool->ops->set_access(pool->vm, move->staging,
                                    move->count * pool->config.granule_bytes);
    }
    return err;
}

/* Unmaps runs of the staging window; what the seam keeps stays marked. */
static bool unstage(struct spw_pool *pool, struct spw_move *move)
{
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
        if (pool->ops->unmap(pool->vm, staged_at(pool, move, first), bytes,
                             pool->config.granule_bytes, &done) == SPW_OK) {
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

static enum spw_tier other_tier(enum spw_tier tier)
{
    return tier == SPW_TIER_HOST ? SPW_TIER_DEVICE : SPW_TIER_HOST;
}

static bool end(struct spw_pool *pool, struct spw_move *move)
{
    if (!unstage(pool, move)) {
        return false;
    }
    drop_fence(pool, &move->drained);
    while (move->count > 0) {
        const struct spw_move_item *item = &move->items[--move->count];

        spw_pool_backing_unhold(&pool->backing, item->committed ? other_tier(item->to) : item->to,
                                item->chunk);
        unpin(pool, item);
    }
    return true;
}

static void drop(struct spw_pool *pool, struct spw_move *move)
{
    move->over = false;
    for (int tier = 0; tier < SPW_TIER_COUNT; tier++) {
        drop_fence(pool, &move->fences[tier]);
    }
    if (!end(pool, move)) {
        /* The seam keeps the mapping, and with it the memory. */
        for (size_t i = 0; i < move->count; i++) {
            move->items[i].staged = false;
        }
        (void)end(pool, move);
    }
}

void spw_pool_move_drop(struct spw_pool *pool)
{
    for (size_t i = 0; i < SPW_MOVES; i++) {
        drop(pool, &pool->moves[i]);
    }
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

/* Ends a move if it is over and its copies are done. SPW_E_AGAIN when they are not. */
static enum spw_err settle(struct spw_pool *pool, struct spw_move *move)
{
    if (!move->over) {
        return SPW_OK;
    }
    for (int tier = 0; tier < SPW_TIER_COUNT; tier++) {
        if (ask(pool, &move->fences[tier]) != SPW_OK) {
            return SPW_E_AGAIN;
        }
    }
    move->over = !end(pool, move);
    return move->over ? SPW_E_AGAIN : SPW_OK;
}

void spw_pool_move_settle(struct spw_pool *pool)
{
    for (size_t i = 0; i < SPW_MOVES; i++) {
        (void)settle(pool, &pool->moves[i]);
    }
}

/* A move that is not under way, with its window; NULL when all are. */
static struct spw_move *find_move(struct spw_pool *pool)
{
    for (size_t i = 0; i < SPW_MOVES; i++) {
        if (pool->moves[i].count == 0) {
            pool->moves[i].staging =
                pool->backing.staging + i * SPW_MOVE_GRANULES * pool->config.granule_bytes;
            return &pool->moves[i];
        }
    }
    return NULL;
}

/* Chooses, pins, gets chunks and stages them. */
static enum spw_err prepare(struct spw_pool *pool, struct spw_move *move,
                            const struct spw_move_wish *wish)
{
    enum spw_err err;

    choose(pool, move, wish);
    get_chunks(pool, move);
    if (move->count == 0) {
        return SPW_E_NO_MEMORY;
    }
    qsort(move->items, move->count, sizeof(move->items[0]), by_granule);
    err = stage(pool, move);
    if (err != SPW_OK) {
        move->over = !end(pool, move);
    }
    return err;
}

enum spw_err spw_pool_move_begin(struct spw_pool *pool, const struct spw_move_wish *wish,
                                 struct spw_move **ret_move)
{
    enum spw_err err = SPW_E_AGAIN;
    struct spw_move *move;

    spw_lock(&pool->lock);
    spw_pool_move_settle(pool);
    move = find_move(pool);
    /* What is refused to what was lost would be refused to the next ones too. */
    if (move != NULL && (pool->backing.lost == 0 || spw_pool_remap_lost(pool))) {
        err = prepare(pool, move, wish);
    }
    if (err == SPW_OK) {
        *ret_move = move;
    }
    spw_unlock(&pool->lock);
    return err;
}

enum spw_err spw_pool_move_end(struct spw_pool *pool, struct spw_move *move)
{
    enum spw_err err;

    spw_lock(&pool->lock);
    move->over = move->count > 0;
    err = settle(pool, move);
    spw_unlock(&pool->lock);
    return err;
}

void spw_pool_move_leave(struct spw_pool *pool, struct spw_move *move)
{
    spw_lock(&pool->lock);
    move->over = move->count > 0;
    spw_unlock(&pool->lock);
}

size_t spw_pool_move_places(struct spw_pool *pool, const struct spw_move *move,
                            struct spw_move_place *ret_places)
{
    size_t count;

    spw_lock(&pool->lock);
    for (count = 0; count < move->count; count++) {
        ret_places[count] =
            (struct spw_move_place){.granule = spw_pool_move_address(pool, &move->items[count]),
                                    .to = move->items[count].to};
    }
    spw_unlock(&pool->lock);
    return count;
}

/* ---- copying and waiting ---- */

/* Enqueues the copies to one tier. Caller holds the lock. */
static enum spw_err copy_to(struct spw_pool *pool, struct spw_move *move, enum spw_tier to,
                            bool after_all)
{
    struct spw_vm_copy copies[SPW_MOVE_GRANULES];
    size_t count = 0;

    for (size_t i = 0, run; i < move->count; i += run) {
        run = spw_pool_move_run(move, i);
        if (move->items[i].to == to) {
            copies[count++] =
                (struct spw_vm_copy){.to = staged_at(pool, move, i),
                                     .from = spw_pool_move_address(pool, &move->items[i]),
                                     .bytes = run * pool->config.granule_bytes};
        }
    }
    return count == 0 ? SPW_OK
                      : pool->ops->copy(pool->vm, to, copies, count, after_all, &move->fences[to]);
}

enum spw_err spw_pool_move_copy(struct spw_pool *pool, struct spw_move *move, bool after_all)
{
    enum spw_err err;

    spw_lock(&pool->lock);
    err = copy_to(pool, move, SPW_TIER_HOST, after_all);
    if (err == SPW_OK) {
        err = copy_to(pool, move, SPW_TIER_DEVICE, after_all);
    }
    spw_unlock(&pool->lock);
    return err;
}

enum spw_err spw_pool_move_poll(struct spw_pool *pool, struct spw_move *move)
{
    enum spw_err err;

    spw_lock(&pool->lock);
    err = ask(pool, &move->fences[SPW_TIER_HOST]);
    if (err == SPW_OK) {
        err = ask(pool, &move->fences[SPW_TIER_DEVICE]);
    }
    spw_unlock(&pool->lock);
    return err;
}

enum spw_err spw_pool_move_drain(struct spw_pool *pool, struct spw_move *move)
{
    const struct spw_stream all = {.id = SPW_STREAM_ALL};
    enum spw_err err = SPW_OK;

    spw_lock(&pool->lock);
    if (move->drained == NULL) {
        err = pool->ops->fence(pool->vm, &all, &move->drained);
    }
    if (err == SPW_OK) {
        err = ask(pool, &move->drained);
    }
    spw_unlock(&pool->lock);
    return err;
}

void spw_pool_move_leave_out(struct spw_pool *pool, struct spw_move *move, uint64_t granule)
{
    spw_lock(&pool->lock);
    for (size_t i = 0; i < move->count; i++) {
        if (spw_pool_move_address(pool, &move->items[i]) == granule) {
            move->items[i].left_out = true;
        }
    }
    spw_unlock(&pool->lock);
}

/* ---- samples ---- */

/* How many granules of the run of `count` from `first` on begin in the same block, or free extent.
 */
static size_t stretch_of(const struct spw_pool *pool, const struct spw_move *move, size_t first,
                         size_t count)
{
    const struct spw_extent *extent =
        spw_pool_space_find(&pool->space, spw_pool_move_address(pool, &move->items[first]));
    size_t next = first + 1;

    while (next < first + count && extent != NULL &&
           spw_pool_move_address(pool, &move->items[next]) < spw_pool_extent_end(extent)) {
        next++;
    }
    return next - first;
}

static void choose_sample(const struct spw_pool *pool, struct spw_move *move, uint64_t turn)
{
    for (size_t i = 0, run; i < move->count; i += run) {
        run = spw_pool_move_run(move, i);
        for (size_t k = i, stretch; k < i + run; k += stretch) {
            stretch = stretch_of(pool, move, k, i + run - k);
            for (size_t m = k; m < k + stretch; m++) {
                move->items[m].sampled = m == k + turn % stretch;
            }
        }
    }
}

/* Reads a copy. The lock is not kept from one to the next: the program allocates meanwhile. */
static enum spw_err hash_copy(struct spw_pool *pool, const struct spw_move *move, size_t item,
                              uint64_t *ret_hash)
{
    enum spw_err err;

    spw_lock(&pool->lock);
    err = pool->ops->hash(pool->vm, staged_at(pool, move, item), pool->config.granule_bytes,
                          ret_hash);
    spw_unlock(&pool->lock);
    return err;
}

enum spw_err spw_pool_move_sample(struct spw_pool *pool, struct spw_move *move, uint64_t turn)
{
    enum spw_err err = SPW_OK;

    spw_lock(&pool->lock);
    choose_sample(pool, move, turn);
    spw_unlock(&pool->lock);
    for (size_t i = 0; i < move->count && err == SPW_OK; i++) {
        if (move->items[i].sampled) {
            err = hash_copy(pool, move, i, &move->items[i].copied_hash);
        }
    }
    return err;
}

enum spw_err spw_pool_move_compare(struct spw_pool *pool, const struct spw_move *move,
                                   uint64_t *ret_granule)
{
    enum spw_err err = SPW_OK;

    *ret_granule = 0;
    for (size_t i = 0; i < move->count && err == SPW_OK && *ret_granule == 0; i++) {
        uint64_t hash;

        if (!move->items[i].sampled) {
            continue;
        }
        err = hash_copy(pool, move, i, &hash);
        if (err == SPW_OK && hash != 0 && hash != move->items[i].copied_hash) {
            *ret_granule = spw_pool_move_address(pool, &move->items[i]);
        }
    }
    return err;
}

/* ---- proof ---- */

enum spw_err spw_pool_move_hash(struct spw_pool *pool, struct spw_move *move)
{
    enum spw_err err = SPW_OK;

    spw_lock(&pool->lock);
    for (size_t i = 0; i < move->count && err == SPW_OK; i++) {
        err = pool->ops->hash(pool->vm, spw_pool_move_address(pool, &move->items[i]),
                              pool->config.granule_bytes, &move->items[i].hash);
    }
    spw_unlock(&pool->lock);
    return err;
}

uint64_t spw_pool_move_verify(struct spw_pool *pool, const struct spw_move *move)
{
    uint64_t wrong = 0;

    spw_lock(&pool->lock);
    for (size_t i = 0; i < move->count && wrong == 0; i++) {
        uint64_t hash;

        if (pool->ops->hash(pool->vm, spw_pool_move_address(pool, &move->items[i]),
                            pool->config.granule_bytes, &hash) == SPW_OK &&
            hash != 0 && hash != move->items[i].hash) {
            wrong = spw_pool_move_address(pool, &move->items[i]);
        }
    }
    spw_unlock(&pool->lock);
    return wrong;
}

void spw_pool_fix_all(struct spw_pool *pool)
{
    spw_lock(&pool->lock);
    pool->fixed_id = pool->next_id;
    spw_unlock(&pool->lock);
}
