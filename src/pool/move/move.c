#include "pool/move.h"

#include <stdlib.h>

#include "pool/alloc/state.h"
#include "pool/memory/away.h"
#include "pool/memory/moves.h"
#include "pool/memory/stock.h"
#include "pool/move/movable.h"
#include "pool/space/heaps.h"
#include "pool/space/lost.h"
#include "pool/space/pending.h"

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

/* While blocks that graphs name may move, those blocks have the highest priority. */
static int32_t priority_of(const struct spw_moves *moves, const struct spw_extent *block)
{
    const unsigned by_graph = SPW_FIXED_BY_GRAPH | SPW_NAMED_BY_GRAPH;

    return moves->overruled != 0 && (block->fixed & by_graph) != 0 ? INT32_MAX : block->priority;
}

static bool is_meant(const struct spw_block_filter *filter, const struct spw_extent *block)
{
    return (filter->account == 0 || block->account == filter->account) &&
           (filter->sites == NULL ||
            (block->site < filter->site_count &&
             (filter->sites[block->site / 64] >> block->site % 64 & 1) != 0));
}

/* Lists the blocks that qualify, in the order of moving. The caller frees *ret_candidates. Returns
 * 0 if no block qualifies, or if there is no memory for the list. */
static size_t list_candidates(const struct spw_pool *pool, const struct spw_move_request *request,
                              struct candidate **ret_candidates)
{
    struct candidate *candidates = malloc(pool->blocks.count * sizeof(*candidates));
    size_t count = 0;

    for (const struct spw_extent *e = spw_pool_heaps_first_large(pool->space.heaps);
         candidates != NULL && e != NULL; e = spw_pool_heaps_next_large(pool->space.heaps, e)) {
        if (e->kind == SPW_EXTENT_BLOCK && spw_pool_can_move(&pool->moves, e) &&
            (request->to == SPW_TIER_HOST || e->placed == 0) && is_meant(&request->only, e) &&
            pool->queues.clock - e->used >= request->least_age) {
            candidates[count++] = (struct candidate){e, e->used, priority_of(&pool->moves, e)};
        }
    }
    if (candidates != NULL) {
        qsort(candidates, count, sizeof(*candidates),
              request->to == SPW_TIER_HOST ? coldest_first : hottest_first);
    }
    *ret_candidates = candidates;
    return count;
}

/* If the chunk of a block at `at` may move, adds it to the move and pins it. Returns the end of the
 * chunk's addresses. */
static uint64_t take_chunk(struct spw_backing *backing, struct spw_move *move,
                           const struct spw_extent *block, uint64_t at, enum spw_tier to)
{
    size_t index = spw_pool_backing_index(backing, at);
    size_t first = spw_pool_backing_chunk_begin(backing, index);
    size_t last = spw_pool_backing_chunk_end(backing, index);

    if (backing->granules[index].chunk != 0 && backing->granules[index].tier != to &&
        move->granules + (last - first) <= SPW_MOVE_GRANULES &&
        spw_pool_movable_chunk(backing, block, first, last, to)) {
        for (size_t i = first; i < last; i++) {
            backing->granules[i].pinned = true;
        }
        move->granules += last - first;
        move->items[move->count] = (struct spw_move_item){
            .granule = first, .count = last - first, .urgency = move->count, .to = to};
        move->count++;
    }
    return spw_pool_backing_address(backing, last);
}

/* Adds the chunks of a block until the move has `most` granules. */
static void take_chunks(struct spw_backing *backing, struct spw_move *move,
                        const struct spw_extent *block, size_t most, enum spw_tier to)
{
    uint64_t at = spw_pool_backing_down(backing, block->address);

    while (at < spw_pool_extent_end(block) && move->granules < most) {
        at = take_chunk(backing, move, block, at, to);
    }
}

static int by_granule(const void *a, const void *b)
{
    const struct spw_move_item *left = a, *right = b;

    return left->granule < right->granule ? -1 : left->granule > right->granule;
}

static int by_urgency(const void *a, const void *b)
{
    const struct spw_move_item *left = a, *right = b;

    return left->urgency < right->urgency ? -1 : left->urgency > right->urgency;
}

/* ---- joining neighbours ---- */

/* Returns the number of items from `first` on that one chunk of at most `most` granules can
 * replace. The items are neighbours with the same new tier. Returns the largest such number. */
static size_t joinable(const struct spw_move *move, size_t first, size_t most)
{
    size_t granules = move->items[first].count, best = 1;

    for (size_t i = first + 1;
         i < move->count && move->items[i].to == move->items[first].to &&
         spw_pool_move_adjoins(&move->items[i - 1], &move->items[i]) && granules < most;
         i++) {
        granules += move->items[i].count;
        if (granules <= most && (granules & (granules - 1)) == 0) {
            best = i + 1 - first;
        }
    }
    return best;
}

/* Lets neighbours move to one larger chunk. They are likely to move again, and will then move as
 * one chunk. The items stay in the order of their urgency. */
static void join_neighbours(const struct spw_stock *stock, struct spw_move *move)
{
    size_t most = spw_pool_stock_size(spw_pool_stock_join_order(stock)), joined = 0;

    qsort(move->items, move->count, sizeof(move->items[0]), by_granule);
    for (size_t i = 0, next; i < move->count; i = next) {
        struct spw_move_item item = move->items[i];

        next = i + joinable(move, i, most);
        for (size_t k = i + 1; k < next; k++) {
            item.count += move->items[k].count;
            item.urgency =
                move->items[k].urgency < item.urgency ? move->items[k].urgency : item.urgency;
        }
        move->items[joined++] = item;
    }
    move->count = joined;
    qsort(move->items, move->count, sizeof(move->items[0]), by_urgency);
}

/* Returns true if a block is on the chunk of the granule at `address`. */
static bool covers(const struct spw_backing *backing, const struct spw_extent *block,
                   uint64_t address)
{
    size_t index = spw_pool_backing_index(backing, address);

    return spw_pool_backing_chunk_begin(backing, index) <=
               spw_pool_backing_index(backing, spw_pool_extent_end(block) - 1) &&
           spw_pool_backing_chunk_end(backing, index) >
               spw_pool_backing_index(backing, block->address);
}

/* Adds the chunks of the granules that the caller has chosen. Leaves out granules that have changed
 * in the meantime. */
static void take_places(struct spw_pool *pool, struct spw_move *move,
                        const struct spw_move_request *request)
{
    for (size_t i = 0; i < request->count && move->granules < SPW_MOVE_GRANULES; i++) {
        const struct spw_move_place *place = &request->places[i];
        const struct spw_extent *block = spw_pool_address_map_get(&pool->blocks, place->block);

        if (block != NULL && covers(&pool->backing, block, place->granule)) {
            (void)take_chunk(&pool->backing, move, block, place->granule, place->to);
        }
    }
}

static void choose(struct spw_pool *pool, struct spw_move *move,
                   const struct spw_move_request *request)
{
    uint64_t granules =
        (request->bytes + pool->backing.granule_bytes - 1) / pool->backing.granule_bytes;
    size_t most = granules < SPW_MOVE_GRANULES ? (size_t)granules : SPW_MOVE_GRANULES;
    struct candidate *candidates;
    size_t count;

    if (request->places != NULL) {
        take_places(pool, move, request);
        return;
    }
    count = list_candidates(pool, request, &candidates);
    for (size_t i = 0; i < count && move->granules < most; i++) {
        take_chunks(&pool->backing, move, candidates[i].block, most, request->to);
    }
    free(candidates);
}

/* ---- beginning and ending ---- */

/* If not enough chunks are spare, steals free memory of the device. */
static void find_spare(struct spw_space *space, const struct spw_move *move)
{
    size_t wanted = 0, spare = spw_pool_backing_spare(space->backing);

    for (size_t i = 0; i < move->count; i++) {
        wanted += move->items[i].to == SPW_TIER_DEVICE ? move->items[i].count : 0;
    }
    if (wanted > spare) {
        spw_pool_poll_queues(space, NULL, true);
        (void)spw_pool_space_steal(space, wanted - spare);
    }
}

/* Gets a new chunk for each item. Drops the items that get none. */
static void get_chunks(struct spw_space *space, struct spw_move *move)
{
    size_t full[SPW_TIER_COUNT] = {SIZE_MAX, SIZE_MAX}; /* sizes that were not available */
    size_t had = 0;

    find_spare(space, move);
    move->granules = 0;
    for (size_t i = 0; i < move->count; i++) {
        struct spw_move_item item = move->items[i];

        if (item.count < full[item.to] &&
            spw_pool_stock_hold(&space->backing->stock, item.to, spw_pool_stock_order(item.count),
                                spw_pool_stock_room(&space->backing->stock, item.to), &item.chunk,
                                &item.alias) == SPW_OK) {
            move->items[had++] = item;
            move->granules += item.count;
            continue;
        }
        full[item.to] = item.count < full[item.to] ? item.count : full[item.to];
        for (size_t k = item.granule; k < item.granule + item.count; k++) {
            space->backing->granules[k].pinned = false;
        }
    }
    move->count = had;
}

/* Returns an unused record of a move; NULL if all records are in use. */
static struct spw_move *find_move(struct spw_moves *moves)
{
    for (size_t i = 0; i < SPW_MOVES; i++) {
        if (moves->each[i].count == 0) {
            return &moves->each[i];
        }
    }
    return NULL;
}

/* Chooses and pins granules, and gets new chunks. */
static enum spw_err prepare(struct spw_pool *pool, struct spw_move *move,
                            const struct spw_move_request *request)
{
    move->granules = 0;
    choose(pool, move, request);
    if (move->count == 0) {
        return SPW_E_NOTHING;
    }
    join_neighbours(&pool->backing.stock, move);
    get_chunks(&pool->space, move);
    if (move->count == 0) {
        return SPW_E_NO_MEMORY;
    }
    qsort(move->items, move->count, sizeof(move->items[0]), by_granule);
    return SPW_OK;
}

enum spw_err spw_pool_move_begin(struct spw_pool *pool, const struct spw_move_request *request,
                                 struct spw_move **ret_move)
{
    enum spw_err err = SPW_E_AGAIN;
    struct spw_move *move;

    spw_lock(&pool->lock);
    spw_pool_move_end_finished(&pool->backing);
    move = find_move(&pool->moves);
    /* If lost granules cannot be mapped now, the move would lose more granules. */
    if (move != NULL && (pool->backing.lost == 0 || spw_pool_lost_remap(&pool->space)) &&
        !spw_pool_backing_is_refused(&pool->backing)) {
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
    err = spw_pool_move_end_if_finished(&pool->backing, move);
    spw_unlock(&pool->lock);
    return err;
}

void spw_pool_move_leave(struct spw_pool *pool, struct spw_move *move)
{
    spw_lock(&pool->lock);
    move->over = move->count > 0;
    spw_unlock(&pool->lock);
}

static size_t list_places(struct spw_pool *pool, const struct spw_move *move, bool committed_only,
                          struct spw_move_place *ret_places)
{
    size_t count = 0;

    spw_lock(&pool->lock);
    for (size_t i = 0; i < move->count; i++) {
        const struct spw_move_item *item = &move->items[i];

        for (size_t k = 0; k < item->count && (item->committed || !committed_only); k++) {
            ret_places[count++] =
                (struct spw_move_place){.granule = spw_pool_move_address(&pool->backing, item) +
                                                   k * pool->backing.granule_bytes,
                                        .to = item->to};
        }
    }
    spw_unlock(&pool->lock);
    return count;
}

size_t spw_pool_move_places(struct spw_pool *pool, const struct spw_move *move,
                            struct spw_move_place *ret_places)
{
    return list_places(pool, move, /* committed only */ false, ret_places);
}

size_t spw_pool_move_committed(struct spw_pool *pool, const struct spw_move *move,
                               struct spw_move_place *ret_places)
{
    return list_places(pool, move, /* committed only */ true, ret_places);
}

/* ---- copying and waiting ---- */

/* Lists the copies of an item: one for each old chunk, or a single one if none of them is away.
 * Returns their number. */
static size_t list_copies(struct spw_backing *backing, const struct spw_move_item *item,
                          struct spw_vm_copy *ret_copies)
{
    size_t end = item->granule + item->count, count = 0;

    for (size_t i = item->granule, next; i < end; i = next) {
        next = backing->away > 0 ? spw_pool_backing_chunk_end(backing, i) : end;
        ret_copies[count++] =
            (struct spw_vm_copy){.to = item->alias + (i - item->granule) * backing->granule_bytes,
                                 .from = spw_pool_away_source(backing, i),
                                 .bytes = (next - i) * backing->granule_bytes};
    }
    return count;
}

/* Enqueues the copies of a part to one tier. Caller holds the lock. */
static enum spw_err copy_to(struct spw_backing *backing, struct spw_move *move, size_t part,
                            enum spw_tier to, bool after_all)
{
    struct spw_vm_copy *copies = backing->moves->copies;
    size_t count = 0;

    for (size_t i = spw_pool_move_part_begin(move, part); i < move->ends[part]; i++) {
        const struct spw_move_item *item = &move->items[i];

        if (item->to == to && !item->left_out) {
            count += list_copies(backing, item, &copies[count]);
        }
    }
    return count == 0 ? SPW_OK
                      : backing->vm->ops->copy(backing->vm, to, copies, count, after_all,
                                               &move->fences[part][to]);
}

/* Divides the items into parts of about the same size, at most `most` parts. */
static void divide(struct spw_move *move, size_t most)
{
    size_t granules = 0, part = 0;

    for (size_t i = 0; i < move->count; i++) {
        granules += move->items[i].count;
        if (granules * most >= move->granules * (part + 1) || i + 1 == move->count) {
            move->ends[part++] = i + 1;
        }
    }
    move->parts = part;
}

/* Enqueues all copies. Caller holds the lock. */
static enum spw_err copy(struct spw_backing *backing, struct spw_move *move, size_t most_parts,
                         bool after_all)
{
    enum spw_err err = SPW_OK;

    divide(move, most_parts);
    for (size_t part = 0; part < move->parts && err == SPW_OK; part++) {
        err = copy_to(backing, move, part, SPW_TIER_HOST, after_all);
        if (err == SPW_OK) {
            err = copy_to(backing, move, part, SPW_TIER_DEVICE, after_all);
        }
    }
    return err;
}

enum spw_err spw_pool_move_copy(struct spw_pool *pool, struct spw_move *move, bool after_all)
{
    enum spw_err err;

    spw_lock(&pool->lock);
    err = copy(&pool->backing, move, 1, after_all);
    spw_unlock(&pool->lock);
    return err;
}

enum spw_err spw_pool_move_copy_parts(struct spw_pool *pool, struct spw_move *move,
                                      size_t *ret_parts)
{
    enum spw_err err;

    spw_lock(&pool->lock);
    err = copy(&pool->backing, move, SPW_MOVE_PARTS, /* after_all */ false);
    *ret_parts = move->parts;
    spw_unlock(&pool->lock);
    return err;
}

enum spw_err spw_pool_move_poll_part(struct spw_pool *pool, struct spw_move *move, size_t part)
{
    enum spw_err err;

    spw_lock(&pool->lock);
    err = spw_pool_move_query_part(pool->backing.vm, move, part);
    spw_unlock(&pool->lock);
    return err;
}

enum spw_err spw_pool_move_poll(struct spw_pool *pool, struct spw_move *move)
{
    enum spw_err err;

    spw_lock(&pool->lock);
    err = spw_pool_move_query_all(pool->backing.vm, move);
    spw_unlock(&pool->lock);
    return err;
}

enum spw_err spw_pool_move_drain(struct spw_pool *pool, struct spw_move *move)
{
    const struct spw_stream all = {.id = SPW_STREAM_ALL};
    enum spw_err err = SPW_OK;

    spw_lock(&pool->lock);
    if (move->drained == NULL) {
        err = pool->backing.vm->ops->fence(pool->backing.vm, &all, &move->drained);
    }
    if (err == SPW_OK) {
        err = spw_pool_move_query(pool->backing.vm, &move->drained);
    }
    spw_unlock(&pool->lock);
    return err;
}

/* ---- away ---- */

/* Unmaps the granules of items [first, last), which are neighbours. Returns the number of granules
 * unmapped: all or none. */
static size_t detach_run(struct spw_backing *backing, struct spw_move *move, size_t first,
                         size_t last)
{
    size_t begin = move->items[first].granule;
    size_t end = move->items[last - 1].granule + move->items[last - 1].count;

    if (move->items[first].left_out || !spw_pool_away_take(backing, begin, end)) {
        return 0;
    }
    for (size_t i = first; i < last; i++) {
        move->items[i].detached = true;
    }
    return end - begin;
}

size_t spw_pool_move_detach(struct spw_pool *pool, struct spw_move *move)
{
    size_t granules = 0;

    spw_lock(&pool->lock);
    for (size_t i = 0, end; i < move->count; i = end) {
        end = i + spw_pool_move_run(move, i);
        granules += detach_run(&pool->backing, move, i, end);
    }
    for (size_t i = 0; i < move->count && granules > 0; i++) {
        move->items[i].left_out = !move->items[i].detached;
    }
    spw_pool_lost_announce(&pool->backing);
    spw_counter_add(&pool->figures.counters->detached_bytes,
                    granules * pool->backing.granule_bytes);
    spw_unlock(&pool->lock);
    return granules;
}

/* Attaches granules [first, last), which are whole chunks. Caller holds the lock. */
static bool attach(struct spw_backing *backing, size_t first, size_t last)
{
    if (backing->away > 0) {
        spw_pool_moves_attach(backing, first, last);
        spw_pool_lost_announce(backing);
    }
    return backing->lost == 0;
}

bool spw_pool_attach(struct spw_pool *pool, uint64_t address, uint64_t end)
{
    struct spw_backing *backing = &pool->backing;
    bool mapped;

    spw_lock(&pool->lock);
    mapped = attach(backing,
                    spw_pool_backing_chunk_begin(backing, spw_pool_backing_index(backing, address)),
                    spw_pool_backing_chunk_end(backing, spw_pool_backing_index(backing, end - 1)));
    spw_unlock(&pool->lock);
    return mapped;
}

bool spw_pool_attach_all(struct spw_pool *pool)
{
    struct spw_backing *backing = &pool->backing;
    bool mapped;

    spw_lock(&pool->lock);
    mapped = attach(backing, 0, (size_t)(backing->bytes >> backing->granule_shift));
    spw_unlock(&pool->lock);
    return mapped;
}

void spw_pool_move_leave_out(struct spw_pool *pool, struct spw_move *move, uint64_t granule)
{
    spw_lock(&pool->lock);
    for (size_t i = 0; i < move->count; i++) {
        if (granule - spw_pool_move_address(&pool->backing, &move->items[i]) <
            spw_pool_move_bytes(&pool->backing, &move->items[i])) {
            move->items[i].left_out = true;
        }
    }
    spw_unlock(&pool->lock);
}

/* ---- validation ---- */

enum spw_err spw_pool_move_hash(struct spw_pool *pool, struct spw_move *move)
{
    enum spw_err err = SPW_OK;

    spw_lock(&pool->lock);
    for (size_t i = 0; i < move->count && err == SPW_OK; i++) {
        err = pool->backing.vm->ops->hash(
            pool->backing.vm, spw_pool_move_address(&pool->backing, &move->items[i]),
            spw_pool_move_bytes(&pool->backing, &move->items[i]), &move->items[i].hash);
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

        if (pool->backing.vm->ops->hash(
                pool->backing.vm, spw_pool_move_address(&pool->backing, &move->items[i]),
                spw_pool_move_bytes(&pool->backing, &move->items[i]), &hash) == SPW_OK &&
            hash != 0 && hash != move->items[i].hash) {
            wrong = spw_pool_move_address(&pool->backing, &move->items[i]);
        }
    }
    spw_unlock(&pool->lock);
    return wrong;
}

void spw_pool_fix_all(struct spw_pool *pool)
{
    spw_lock(&pool->lock);
    pool->moves.fixed_id = pool->next_id;
    for (size_t i = 0; i < SPW_MOVES; i++) {
        for (size_t k = 0; k < pool->moves.each[i].count; k++) {
            pool->moves.each[i].items[k].left_out = true;
        }
    }
    spw_pool_away_put_back_all(&pool->backing);
    spw_pool_lost_announce(&pool->backing);
    spw_unlock(&pool->lock);
}

void spw_pool_let_graphs_move(struct spw_pool *pool, bool may)
{
    spw_lock(&pool->lock);
    pool->moves.overruled = may ? SPW_FIXED_BY_GRAPH : 0;
    spw_unlock(&pool->lock);
}

void spw_pool_release_all(struct spw_pool *pool)
{
    spw_lock(&pool->lock);
    pool->moves.fixed_id = 0;
    spw_unlock(&pool->lock);
}
