#include "pool/move.h"

#include <stdlib.h>

#include "pool/lost.h"
#include "pool/pending.h"
#include "pool/staging.h"
#include "pool/state.h"

/* ---- choosing ---- */

/* A block that may be moved. */
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

/* Lists the blocks that qualify, in the order to move them. The caller frees *ret_candidates.
 * Returns 0 when there are none, or no memory for the list. */
static size_t list_candidates(const struct spw_pool *pool, const struct spw_move_request *request,
                              struct candidate **ret_candidates)
{
    struct candidate *candidates = malloc(pool->blocks.count * sizeof(*candidates));
    size_t count = 0;

    for (const struct spw_extent *e = spw_pool_space_first_large(&pool->space);
         candidates != NULL && e != NULL; e = spw_pool_space_next_large(&pool->space, e)) {
        if (e->kind == SPW_EXTENT_BLOCK && spw_pool_can_move(pool, e) &&
            (request->to == SPW_TIER_HOST || e->placed == 0) &&
            pool->queues.clock - e->used >= request->least_age) {
            candidates[count++] = (struct candidate){e, e->used, e->priority};
        }
    }
    if (candidates != NULL) {
        qsort(candidates, count, sizeof(*candidates),
              request->to == SPW_TIER_HOST ? coldest_first : hottest_first);
    }
    *ret_candidates = candidates;
    return count;
}

/* True if the neighbours of a block on the granule at `address` allow it to be moved. */
static bool neighbours_agree(const struct spw_pool *pool, const struct spw_extent *block,
                             uint64_t address)
{
    uint64_t end = address + pool->config.granule_bytes;

    for (const struct spw_extent *e = block->prev; e != NULL && spw_pool_extent_end(e) > address;
         e = e->prev) {
        if (!spw_pool_can_move(pool, e)) {
            return false;
        }
    }
    for (const struct spw_extent *e = block->next; e != NULL && e->address < end; e = e->next) {
        if (!spw_pool_can_move(pool, e)) {
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

/* Adds the granules of a block until the move has `most`. */
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

/* Adds the granules that the caller has chosen, unless they have changed. */
static void take_places(struct spw_pool *pool, struct spw_move *move,
                        const struct spw_move_request *request)
{
    for (size_t i = 0; i < request->count && move->count < SPW_MOVE_GRANULES; i++) {
        const struct spw_move_place *place = &request->places[i];
        const struct spw_extent *block = spw_pool_address_map_get(&pool->blocks, place->block);

        if (block != NULL && spw_pool_can_move(pool, block) &&
            (place->to == SPW_TIER_HOST || block->placed == 0) &&
            place->granule < spw_pool_extent_end(block) &&
            place->granule + pool->config.granule_bytes > block->address) {
            take_granule(pool, move, block, place->granule, place->to);
        }
    }
}

static void choose(struct spw_pool *pool, struct spw_move *move,
                   const struct spw_move_request *request)
{
    uint64_t granules =
        (request->bytes + pool->config.granule_bytes - 1) / pool->config.granule_bytes;
    size_t most = granules < SPW_MOVE_GRANULES ? (size_t)granules : SPW_MOVE_GRANULES;
    struct candidate *candidates;
    size_t count;

    if (request->places != NULL) {
        take_places(pool, move, request);
        return;
    }
    count = list_candidates(pool, request, &candidates);
    for (size_t i = 0; i < count && move->count < most; i++) {
        take_granules(pool, move, candidates[i].block, most, request->to);
    }
    free(candidates);
}

/* ---- beginning and ending ---- */

/* True if the limits allow one more chunk of a tier. */
static bool may_create(const struct spw_pool *pool, enum spw_tier tier)
{
    const struct spw_counters *counters = pool->counters;
    uint64_t granule = pool->config.granule_bytes;

    return tier == SPW_TIER_HOST
               ? spw_counter_get(&counters->host_bytes) + granule <= pool->config.host_limit_bytes
               : spw_counter_get(&counters->committed_bytes) + granule <= pool->config.limit_bytes;
}

/* Steals free memory of the device if there are not enough spare chunks. */
static void find_spare(struct spw_pool *pool, const struct spw_move *move)
{
    size_t wanted = 0, spare = spw_pool_backing_spare(&pool->backing);

    for (size_t i = 0; i < move->count; i++) {
        wanted += move->items[i].to == SPW_TIER_DEVICE;
    }
    if (wanted > spare) {
        spw_pool_poll_queues(pool, NULL, true);
        (void)spw_pool_space_steal(&pool->space, wanted - spare);
    }
}

/* Gets new chunks for the granules, and drops those that there is no memory for. */
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
            pool->backing.granules[item.granule].pinned = false;
        }
    }
    move->count = had;
}

/* Returns a free record of a move, with its window; NULL when all are in use. */
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

/* Chooses and pins granules, gets new chunks, and maps them in the staging window. */
static enum spw_err prepare(struct spw_pool *pool, struct spw_move *move,
                            const struct spw_move_request *request)
{
    enum spw_err err;

    choose(pool, move, request);
    get_chunks(pool, move);
    if (move->count == 0) {
        return SPW_E_NO_MEMORY;
    }
    qsort(move->items, move->count, sizeof(move->items[0]), by_granule);
    err = spw_pool_staging_map(pool, move);
    if (err != SPW_OK) {
        move->over = !spw_pool_staging_end(pool, move);
    }
    return err;
}

enum spw_err spw_pool_move_begin(struct spw_pool *pool, const struct spw_move_request *request,
                                 struct spw_move **ret_move)
{
    enum spw_err err = SPW_E_AGAIN;
    struct spw_move *move;

    spw_lock(&pool->lock);
    spw_pool_staging_end_finished(pool);
    move = find_move(pool);
    /* If lost granules cannot be mapped now, others would be lost as well. */
    if (move != NULL && (pool->backing.lost == 0 || spw_pool_lost_remap(pool))) {
        err = prepare(pool, move, request);
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
    err = spw_pool_staging_end_if_finished(pool, move);
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
                (struct spw_vm_copy){.to = spw_pool_staging_address(pool, move, i),
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
    err = spw_pool_staging_query(pool, &move->fences[SPW_TIER_HOST]);
    if (err == SPW_OK) {
        err = spw_pool_staging_query(pool, &move->fences[SPW_TIER_DEVICE]);
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
        err = spw_pool_staging_query(pool, &move->drained);
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

/* Returns how many of `count` items from `first` on lie in the same block or free extent. */
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

/* Hashes the copy of an item. Takes the lock for each copy, so that the program can allocate in
 * between. */
static enum spw_err hash_copy(struct spw_pool *pool, const struct spw_move *move, size_t item,
                              uint64_t *ret_hash)
{
    enum spw_err err;

    spw_lock(&pool->lock);
    err = pool->ops->hash(pool->vm, spw_pool_staging_address(pool, move, item),
                          pool->config.granule_bytes, ret_hash);
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

/* ---- validation ---- */

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
