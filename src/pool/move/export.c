#include "pool/export.h"

#include "pool/alloc/placement.h"
#include "pool/alloc/state.h"
#include "pool/attributes.h"
#include "pool/memory/away.h"
#include "pool/memory/moves.h"
#include "pool/memory/old_chunks.h"
#include "pool/space/exported.h"
#include "pool/space/lost.h"
#include "pool/space/pending.h"

#include <string.h>

static uint64_t bytes_of(const struct spw_backing *backing, const struct spw_export_piece *piece)
{
    return piece->count * backing->granule_bytes;
}

/* ---- which granules ---- */

/* Granules [first, last) of a block. */
struct range {
    size_t first, last;
};

static struct range granules_of(const struct spw_backing *backing, const struct spw_extent *block)
{
    return (struct range){spw_pool_backing_index(backing, block->address),
                          spw_pool_backing_index(backing, spw_pool_extent_end(block) - 1) + 1};
}

/* Returns the first granule of a range that is not exported; the end of the range if there is
 * none. */
static size_t first_private(const struct spw_backing *backing, struct range range)
{
    while (range.first < range.last && backing->granules[range.first].exported) {
        range.first++;
    }
    return range.first;
}

/* Returns SPW_OK if the chunks of granules [first, last) can be replaced: they are whole, no move
 * uses them, and none of them is registered. */
static enum spw_err check_range(const struct spw_space *space, size_t first, size_t last)
{
    const struct spw_extent *e =
        spw_pool_space_find(space, spw_pool_backing_address(space->backing, first));

    for (size_t i = first; i < last; i++) {
        const struct spw_granule *granule = &space->backing->granules[i];

        if (granule->pinned || granule->broken || granule->lost != SPW_LOST_NOTHING) {
            return SPW_E_AGAIN;
        }
    }
    for (; e != NULL && e->address < spw_pool_backing_address(space->backing, last); e = e->next) {
        if (e->kind == SPW_EXTENT_BLOCK && (e->fixed & SPW_FIXED_SHARED) != 0) {
            return SPW_E_INVAL;
        }
        if (e->kind == SPW_EXTENT_CLAIM) {
            return SPW_E_AGAIN;
        }
    }
    return SPW_OK;
}

/* Chooses the next chunks of a block to replace. They have at most `most` granules, or are a single
 * chunk. */
static enum spw_err choose(struct spw_exported *exported, struct range range, size_t most)
{
    struct spw_export *export = &exported->step;
    const struct spw_backing *backing = exported->space->backing;
    size_t at = first_private(backing, range), next;

    export->first = export->last = 0;
    if (at == range.last) {
        return SPW_OK;
    }
    if (backing->granules[at].chunk == 0) {
        return SPW_E_UNSUPPORTED;
    }
    export->first = spw_pool_backing_chunk_begin(backing, at);
    export->last = spw_pool_backing_chunk_end(backing, at);
    while (export->last < range.last && backing->granules[export->last].chunk != 0 &&
           !backing->granules[export->last].exported) {
        next = spw_pool_backing_chunk_end(backing, export->last);
        if (next - export->first > most) {
            break;
        }
        export->last = next;
    }
    return check_range(exported->space, export->first, export->last);
}

/* ---- new chunks ---- */

static void add_pieces(struct spw_export *export, size_t first, size_t last, enum spw_tier tier,
                       bool own)
{
    while (first < last) {
        size_t count = spw_pool_stock_size(spw_pool_stock_order(last - first));

        export->pieces[export->count++] = (struct spw_export_piece){
            .granule = first, .count = count, .tier = tier, .lost = SPW_LOST_MAPPING, .own = own};
        first += count;
    }
}

/* Divides the granules into pieces under the block and pieces next to it. A granule that the block
 * shares with other blocks is a piece of its own. The other chunks can then be released without
 * waiting until the neighbouring blocks are freed. */
static void divide(struct spw_exported *exported, const struct spw_extent *block,
                   struct range range)
{
    const struct spw_backing *backing = exported->space->backing;
    struct spw_export *export = &exported->step;
    const struct spw_granule *granules = backing->granules;
    size_t first = export->first > range.first ? export->first : range.first;
    size_t last = export->last < range.last ? export->last : range.last;
    size_t begin = first, end = last;

    export->count = 0;
    add_pieces(export, export->first, first, granules[export->first].tier, /* own */ false);
    if (first == range.first && block->address > spw_pool_backing_address(backing, first)) {
        begin++;
        add_pieces(export, first, begin, SPW_TIER_DEVICE, /* own */ true);
    }
    if (last == range.last && last > begin &&
        spw_pool_extent_end(block) < spw_pool_backing_address(backing, last)) {
        end--;
    }
    add_pieces(export, begin, end, SPW_TIER_DEVICE, /* own */ true);
    add_pieces(export, end, last, SPW_TIER_DEVICE, /* own */ true);
    add_pieces(export, last, export->last, granules[export->last - 1].tier, /* own */ false);
}

/* Gives free memory back to the driver until `wanted` granules may be created. */
static void make_room(struct spw_space *space, size_t wanted)
{
    struct spw_stock *stock = &space->backing->stock;
    size_t room = spw_pool_stock_room(stock, SPW_TIER_DEVICE);
    size_t missing = wanted > room ? wanted - room : 0;
    size_t spare = spw_pool_backing_spare(space->backing);

    if (missing > spare) {
        spw_pool_poll_queues(space, NULL, /* record */ true);
        (void)spw_pool_space_steal(space, missing - spare);
    }
    if (missing > 0) {
        (void)spw_pool_stock_release(stock, SPW_TIER_DEVICE, missing);
    }
}

/* Gets an exportable chunk. If the device is full, first gives free memory of the pool back. */
static enum spw_err get_own(struct spw_space *space, struct spw_export_piece *piece)
{
    struct spw_stock *stock = &space->backing->stock;
    unsigned order = spw_pool_stock_order(piece->count);
    enum spw_err err;

    make_room(space, piece->count);
    if (spw_pool_stock_room(stock, SPW_TIER_DEVICE) < piece->count) {
        return SPW_E_LIMIT;
    }
    err = spw_pool_stock_hold_exportable(stock, order, &piece->chunk, &piece->alias);
    if (err == SPW_E_NO_MEMORY) {
        spw_pool_poll_queues(space, NULL, /* record */ true);
        (void)spw_pool_space_steal(space, piece->count);
        (void)spw_pool_stock_release(stock, SPW_TIER_DEVICE, SIZE_MAX);
        err = spw_pool_stock_hold_exportable(stock, order, &piece->chunk, &piece->alias);
    }
    return err;
}

static void give_back(struct spw_stock *stock, const struct spw_export_piece *piece)
{
    unsigned order = spw_pool_stock_order(piece->count);

    if (piece->own) {
        stock->tiers[SPW_TIER_DEVICE].held -= piece->count;
        spw_pool_stock_discard(stock, order, piece->chunk);
    } else {
        spw_pool_stock_unhold(stock, piece->tier, order, piece->chunk);
    }
}

static enum spw_err get_chunks(struct spw_exported *exported)
{
    struct spw_stock *stock = &exported->space->backing->stock;
    struct spw_export *export = &exported->step;
    enum spw_err err = SPW_OK;
    size_t had = 0;

    for (; had < export->count && err == SPW_OK; had += err == SPW_OK) {
        struct spw_export_piece *piece = &export->pieces[had];

        err = piece->own
                  ? get_own(exported->space, piece)
                  : spw_pool_stock_hold(stock, piece->tier, spw_pool_stock_order(piece->count),
                                        spw_pool_stock_room(stock, piece->tier), &piece->chunk,
                                        &piece->alias);
    }
    while (err != SPW_OK && had > 0) {
        give_back(stock, &export->pieces[--had]);
    }
    return err;
}

static void pin(struct spw_exported *exported, bool pinned)
{
    for (size_t i = exported->step.first; i < exported->step.last; i++) {
        exported->space->backing->granules[i].pinned = pinned;
    }
}

static enum spw_err prepare(struct spw_exported *exported, const struct spw_extent *block,
                            size_t most)
{
    struct range range = granules_of(exported->space->backing, block);
    enum spw_err err = choose(exported, range, most);

    if (err != SPW_OK || exported->step.first == exported->step.last) {
        return err;
    }
    spw_pool_away_put_back(exported->space->backing, exported->step.first, exported->step.last);
    spw_pool_lost_announce(exported->space->backing);
    if (exported->space->backing->lost > 0) {
        return SPW_E_AGAIN;
    }
    if (!spw_pool_exported_reserve(exported, exported->step.last - exported->step.first)) {
        return SPW_E_METADATA_NOMEM;
    }
    divide(exported, block, range);
    pin(exported, true); /* making room may steal chunks */
    err = get_chunks(exported);
    if (err != SPW_OK) {
        pin(exported, false);
    }
    return err;
}

/* ---- waiting and copying ---- */

enum spw_err spw_pool_export_drain(struct spw_pool *pool)
{
    const struct spw_stream all = {.id = SPW_STREAM_ALL};
    enum spw_err err = SPW_OK;

    spw_lock(&pool->lock);
    if (pool->exported.step.drained == NULL) {
        err = pool->backing.vm->ops->fence(pool->backing.vm, &all, &pool->exported.step.drained);
    }
    if (err == SPW_OK) {
        err = spw_pool_move_query(pool->backing.vm, &pool->exported.step.drained);
    }
    spw_unlock(&pool->lock);
    return err;
}

/* Lists the copies of a piece, and returns their number. Each copy reads only one tier, because the
 * driver may choose the kind of copy by the first byte. */
static size_t list_copies(const struct spw_backing *backing, const struct spw_export_piece *piece,
                          struct spw_vm_copy *ret_copies)
{
    uint64_t from = spw_pool_backing_address(backing, piece->granule),
             end = from + bytes_of(backing, piece);
    uint64_t to = piece->alias;
    size_t count = 0;

    while (from < end) {
        uint64_t bytes = spw_pool_backing_run(backing, from, end);

        ret_copies[count++] = (struct spw_vm_copy){.to = to, .from = from, .bytes = bytes};
        from += bytes;
        to += bytes;
    }
    return count;
}

static enum spw_err copy_to(struct spw_exported *exported, enum spw_tier to)
{
    struct spw_backing *backing = exported->space->backing;
    struct spw_export *export = &exported->step;
    struct spw_vm_copy *copies = backing->moves->copies;
    size_t count = 0;

    for (size_t i = 0; i < export->count; i++) {
        if (export->pieces[i].tier == to) {
            count += list_copies(backing, &export->pieces[i], &copies[count]);
        }
    }
    return count == 0 ? SPW_OK
                      : backing->vm->ops->copy(backing->vm, to, copies, count,
                                               /* after_all */ false, &export->fences[to]);
}

static enum spw_err query_copies(struct spw_exported *exported)
{
    enum spw_err err = SPW_OK;

    for (int tier = 0; tier < SPW_TIER_COUNT && err == SPW_OK; tier++) {
        err = spw_pool_move_query(exported->space->backing->vm, &exported->step.fences[tier]);
    }
    return err;
}

enum spw_err spw_pool_export_copy(struct spw_pool *pool)
{
    enum spw_err err;

    spw_lock(&pool->lock);
    err = query_copies(&pool->exported); /* copies of an earlier attempt */
    for (int tier = 0; tier < SPW_TIER_COUNT && err == SPW_OK; tier++) {
        err = copy_to(&pool->exported, tier);
    }
    spw_unlock(&pool->lock);
    return err;
}

enum spw_err spw_pool_export_poll(struct spw_pool *pool)
{
    enum spw_err err;

    spw_lock(&pool->lock);
    err = query_copies(&pool->exported);
    spw_unlock(&pool->lock);
    return err;
}

/* ---- the switch ---- */

/* Unmaps the mapped pieces. If the backend refuses to unmap a piece, stops and returns false. */
static bool unmap_pieces(struct spw_exported *exported)
{
    struct spw_backing *backing = exported->space->backing;
    enum spw_err err = SPW_OK;

    for (size_t i = 0; i < exported->step.count && err == SPW_OK; i++) {
        struct spw_export_piece *piece = &exported->step.pieces[i];
        uint64_t bytes = bytes_of(backing, piece), done = bytes;

        if (piece->lost != SPW_LOST_MAPPING) {
            err = backing->vm->ops->unmap(backing->vm,
                                          spw_pool_backing_address(backing, piece->granule), bytes,
                                          bytes, &done);
            piece->lost = err == SPW_OK ? SPW_LOST_MAPPING : piece->lost;
        }
    }
    return err == SPW_OK;
}

/* Maps every piece and gives access. */
static enum spw_err map_pieces(struct spw_exported *exported)
{
    struct spw_backing *backing = exported->space->backing;
    struct spw_export *export = &exported->step;
    enum spw_err err = SPW_OK;

    for (size_t i = 0; i < export->count && err == SPW_OK; i++) {
        struct spw_export_piece *piece = &export->pieces[i];

        err = backing->vm->ops->map(backing->vm, spw_pool_backing_address(backing, piece->granule),
                                    bytes_of(backing, piece), piece->chunk - 1);
        piece->lost = err == SPW_OK ? SPW_LOST_ACCESS : piece->lost;
    }
    for (size_t i = 0; i < export->count && err == SPW_OK; i++) {
        struct spw_export_piece *piece = &export->pieces[i];
        uint64_t bytes = bytes_of(backing, piece);

        err = spw_pool_backing_set_access(
            backing, spw_pool_backing_address(backing, piece->granule), bytes, bytes);
        piece->lost = err == SPW_OK ? SPW_LOST_NOTHING : piece->lost;
    }
    return err;
}

/* Counts the bytes that move back from the host, before the new chunks are recorded. */
static void count_moved(struct spw_pool *pool, const struct spw_export_piece *piece)
{
    uint64_t at = spw_pool_backing_address(&pool->backing, piece->granule),
             end = at + bytes_of(&pool->backing, piece);

    while (piece->tier == SPW_TIER_DEVICE && at < end) {
        uint64_t bytes = spw_pool_backing_run(&pool->backing, at, end);

        if (spw_pool_backing_on_host(&pool->backing, at, at + bytes)) {
            spw_counter_add(&pool->figures.counters->promoted_bytes, bytes);
            spw_pool_placement_moved(pool, at, bytes, SPW_TIER_DEVICE);
        }
        at += bytes;
    }
}

/* Records the new chunks in place of the old ones. Also records which parts of their mappings are
 * lost. */
static void record(struct spw_pool *pool)
{
    struct spw_export *export = &pool->exported.step;

    for (size_t i = 0; i < export->count; i++) {
        count_moved(pool, &export->pieces[i]);
    }
    spw_pool_backing_give_up(&pool->backing, export->first, export->last);
    for (size_t i = 0; i < export->count; i++) {
        const struct spw_export_piece *piece = &export->pieces[i];

        spw_pool_backing_install(&pool->backing, piece->granule, piece->tier,
                                 spw_pool_stock_order(piece->count), piece->chunk);
        if (piece->own) {
            spw_pool_backing_mark_exported(&pool->backing, piece->granule);
            pool->exported.granules[pool->exported.count++] = piece->granule;
        }
        spw_pool_backing_mark_lost(&pool->backing, piece->granule, piece->lost);
    }
}

/* Returns a free extent of [address, end) on a broken granule, such as an exported or a lost one;
 * NULL if there is none. */
static struct spw_extent *find_free(const struct spw_space *space, uint64_t address, uint64_t end)
{
    struct spw_extent *e = spw_pool_space_find(space, address);

    while (e != NULL && e->address < end &&
           (e->kind != SPW_EXTENT_FREE ||
            !spw_pool_backing_is_broken(space->backing, e->address, spw_pool_extent_end(e)))) {
        e = e->next;
    }
    return e != NULL && e->address < end ? e : NULL;
}

/* Takes the free extents on exported or lost granules of [address, end) out of use. */
static void retire_free(struct spw_space *space, uint64_t address, uint64_t end)
{
    struct spw_extent *free;

    while ((free = find_free(space, address, end)) != NULL) {
        spw_pool_space_retire(space, free);
    }
}

static enum spw_err commit(struct spw_pool *pool)
{
    struct spw_export *export = &pool->exported.step;
    uint64_t address = spw_pool_backing_address(&pool->backing, export->first),
             end = spw_pool_backing_address(&pool->backing, export->last);
    size_t unmapped = spw_pool_old_chunks_unmap(&pool->backing, export->first, export->last);
    enum spw_err err = unmapped == export->last ? map_pieces(&pool->exported) : SPW_E_NO_MEMORY;

    if (err != SPW_OK && unmap_pieces(&pool->exported)) {
        spw_pool_old_chunks_put_back(&pool->backing, export->first, unmapped);
    } else {
        /* Old chunks cannot be mapped again where a new chunk is still mapped. The new chunks have
         * the content. */
        pin(&pool->exported, false);
        record(pool);
        export->committed = true;
    }
    retire_free(&pool->space, address, end);
    spw_pool_lost_announce(&pool->backing);
    return err;
}

enum spw_err spw_pool_export_commit(struct spw_pool *pool)
{
    enum spw_err err;

    spw_lock(&pool->lock);
    err = commit(pool);
    spw_unlock(&pool->lock);
    return err;
}

/* ---- the end ---- */

/* Drops the second mapping of an exported chunk. It is not needed, because such a chunk never moves
 * again. */
static void drop_alias(struct spw_backing *backing, const struct spw_export_piece *piece)
{
    if (piece->own) {
        (void)spw_pool_alias_drop(&backing->stock.aliases, piece->chunk,
                                  spw_pool_stock_order(piece->count));
    }
}

/* Gives chunks and pins back. The copies must be done, or the device must be gone. */
static void finish(struct spw_exported *exported)
{
    struct spw_backing *backing = exported->space->backing;
    struct spw_export *export = &exported->step;

    for (int tier = 0; tier < SPW_TIER_COUNT; tier++) {
        if (export->fences[tier] != NULL) {
            backing->vm->ops->drop(backing->vm, export->fences[tier]);
        }
    }
    if (export->drained != NULL) {
        backing->vm->ops->drop(backing->vm, export->drained);
    }
    for (size_t i = 0; i < export->count; i++) {
        if (export->committed) {
            drop_alias(backing, &export->pieces[i]);
        } else {
            give_back(&backing->stock, &export->pieces[i]);
        }
    }
    if (!export->committed) {
        pin(exported, false);
    }
    memset(export, 0, sizeof(*export)); /* too large for a stack */
}

/* Returns true if no step is in progress. If a step is over and its copies are done, ends it
 * first. */
static bool is_ready(struct spw_exported *exported)
{
    if (exported->step.over && query_copies(exported) != SPW_E_AGAIN) {
        finish(exported);
    }
    return exported->step.count == 0;
}

void spw_pool_export_drop(struct spw_exported *exported)
{
    if (exported->step.count > 0) {
        finish(exported);
    }
}

void spw_pool_export_end(struct spw_pool *pool)
{
    spw_lock(&pool->lock);
    pool->exported.step.over = true;
    (void)is_ready(&pool->exported);
    spw_unlock(&pool->lock);
}

/* ---- the beginning ---- */

static bool is_short(enum spw_err err)
{
    return err == SPW_E_NO_MEMORY || err == SPW_E_LIMIT;
}

static enum spw_err begin(struct spw_exported *exported, struct spw_extent *block, bool *ret_done)
{
    enum spw_err err;

    if (block->heap == SPW_HEAP_SLAB || block->placed > 0 || block->lazy ||
        exported->space->backing->vm->ops->create_exportable == NULL) {
        return SPW_E_UNSUPPORTED;
    }
    spw_pool_move_end_finished(exported->space->backing);
    if (!is_ready(exported)) {
        return SPW_E_AGAIN;
    }
    err = prepare(exported, block, SPW_EXPORT_GRANULES);
    if (is_short(err)) {
        err = prepare(exported, block, 0);
    }
    *ret_done = err == SPW_OK && exported->step.first == exported->step.last;
    if (*ret_done) {
        block->fixed |= SPW_FIXED_SHARED;
    } else if (err != SPW_OK) {
        exported->step.first = exported->step.last = exported->step.count = 0;
    }
    return err;
}

enum spw_err spw_pool_export_begin(struct spw_pool *pool, uint64_t address, uint64_t id,
                                   bool *ret_done)
{
    enum spw_err err = SPW_E_NOT_OURS;
    struct spw_extent *block;

    *ret_done = false;
    spw_lock(&pool->lock);
    block = pool->shut ? NULL : spw_pool_address_map_get(&pool->blocks, address);
    if (block != NULL && block->id == id) {
        spw_pool_exported_release(&pool->exported);
        err = begin(&pool->exported, block, ret_done);
    }
    spw_unlock(&pool->lock);
    return err;
}

size_t spw_pool_export_chunks(struct spw_pool *pool, uint64_t address,
                              struct spw_exported_chunk *ret_chunks, size_t most,
                              uint64_t *ret_offset)
{
    const struct spw_granule *granules = pool->backing.granules;
    const struct spw_extent *block;
    struct range range;
    size_t count = 0;

    spw_lock(&pool->lock);
    block = spw_pool_address_map_get(&pool->blocks, address);
    range = block != NULL && block->heap != SPW_HEAP_SLAB ? granules_of(&pool->backing, block)
                                                          : (struct range){0};
    if (range.first < range.last && first_private(&pool->backing, range) == range.last) {
        size_t at = spw_pool_backing_chunk_begin(&pool->backing, range.first);

        *ret_offset = address - spw_pool_backing_address(&pool->backing, at);
        for (; at < range.last; at = spw_pool_backing_chunk_end(&pool->backing, at), count++) {
            if (count < most) {
                ret_chunks[count] = (struct spw_exported_chunk){.chunk = granules[at].chunk - 1,
                                                                .bytes = pool->backing.granule_bytes
                                                                         << granules[at].order};
            }
        }
    }
    spw_unlock(&pool->lock);
    return count;
}
