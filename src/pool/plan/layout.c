#include "pool/plan/layout.h"

#include <stdlib.h>
#include <sys/mman.h>

#include "common/hash.h"
#include "pool/plan/packing.h"
#include "pool/plan/repetition.h"
#include "pool/space/space.h"

enum {
    RECORDS_MASK = SPW_LAYOUT_RECORDS - 1,
    PERIOD_LEAST = 8,      /* in blocks; a shorter repetition is a part of a longer one */
    PERIOD_MOST = 1 << 15, /* in blocks; the time for packing grows with the square of this
                              number */
    PAUSE_LEAST = 64,      /* number of blocks between two searches */
    PAUSE_SHARE = 16,      /* in addition, 1/PAUSE_SHARE of the searched blocks */
    AHEAD_MOST = 32,       /* most planned blocks in a row that may be missing */
    STRAY_WEIGHT = 2,      /* number of blocks that fit the plan and together balance one that does
                              not fit */
    SYNC_SYMBOLS = 8,      /* number of sizes in a row that identify a place in the plan */
    SYNC_INTERVAL = 64,    /* increase of `strays` between two searches for the place */
    SURE_PERIODS = 3,      /* number of repetitions in a row that end the search for a longer
                              period */
};

struct spw_layout_record {
    uint64_t bytes;
    uint64_t id;
    uint64_t symbol;     /* hash of the size, and of the bytes freed since the previous block */
    int64_t live;        /* bytes allocated minus bytes freed, after this allocation */
    uint32_t born, died; /* numbers of events; if died is 0, the block is live */
};

/* A block of the plan. */
struct spw_layout_place {
    uint64_t bytes;
    uint64_t address; /* 0: not planned, because the block's end is unknown */
};

/* ---- recording ---- */

static size_t records_bytes(void)
{
    return SPW_LAYOUT_RECORDS * (sizeof(struct spw_layout_record) + sizeof(uint32_t));
}

static struct spw_layout_record *record_at(const struct spw_layout *layout, uint64_t number)
{
    return &layout->records[number & RECORDS_MASK];
}

/* Starts recording. Pages that are never accessed use no memory. */
static void start(struct spw_layout *layout)
{
    void *memory = mmap(NULL, records_bytes(), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (memory != MAP_FAILED) {
        layout->records = memory;
        layout->by_id = (uint32_t *)(layout->records + SPW_LAYOUT_RECORDS);
    }
}

void spw_pool_layout_want(struct spw_layout *layout)
{
    if (layout->records == NULL) {
        start(layout);
    }
    layout->wanted = layout->records != NULL;
}

void spw_pool_layout_record(struct spw_layout *layout, const struct spw_extent *block)
{
    const struct spw_layout_record *before = record_at(layout, layout->count - 1);
    struct spw_layout_record *record = record_at(layout, layout->count);
    int64_t live_before = layout->count > 0 ? before->live : 0;

    *record =
        (struct spw_layout_record){.bytes = block->bytes,
                                   .id = block->id,
                                   .born = ++layout->events,
                                   .live = layout->live + (int64_t)spw_pool_extent_held(block)};
    record->symbol = spw_hash_mix(block->bytes, (uint64_t)(live_before - layout->live));
    layout->live = record->live;
    layout->by_id[block->id & RECORDS_MASK] = (uint32_t)(layout->count & RECORDS_MASK);
    layout->count++;
}

void spw_pool_layout_record_free(struct spw_layout *layout, const struct spw_extent *block)
{
    struct spw_layout_record *record = &layout->records[layout->by_id[block->id & RECORDS_MASK]];

    layout->live -= (int64_t)spw_pool_extent_held(block);
    layout->events++;
    if (record->id == block->id) {
        record->died = layout->events;
    }
}

/* ---- planning ---- */

/* The period that the plan is made from: the last one in the record. */
struct period {
    const struct spw_layout *layout;
    uint64_t first;  /* number of its first block */
    size_t count;    /* number of blocks */
    uint32_t began;  /* number of the event before its first block */
    uint32_t length; /* number of events */
};

/* Returns the number of blocks recorded since the program last changed. */
static size_t known_blocks(const struct spw_layout *layout)
{
    uint64_t count = layout->count - layout->since;

    return count < SPW_LAYOUT_RECORDS ? (size_t)count : SPW_LAYOUT_RECORDS;
}

/* Returns the most bytes that were live after one of the last `count` allocations. */
static int64_t peak_of_last(const struct spw_layout *layout, size_t count)
{
    int64_t peak = INT64_MIN;

    for (size_t i = 1; i <= count; i++) {
        int64_t live = record_at(layout, layout->count - i)->live;

        peak = live > peak ? live : peak;
    }
    return peak;
}

/* The blocks that a search examines. */
struct searched {
    const struct spw_layout *layout;
    const uint64_t *symbols;
    size_t count;
};

/* Returns true if a period may be a whole step. The live bytes at both ends must be equal, because
 * memory grows from layer to layer in the forward part of a step. The period must also contain the
 * peak. */
static bool is_step(const void *cookie, size_t period)
{
    const struct searched *searched = cookie;
    const struct spw_layout *layout = searched->layout;
    size_t count = searched->count;

    if (layout->places != NULL &&
        (period % layout->period == 0 || /* the existing plan */
         !spw_pool_repetition_recurs(searched->symbols, count, period, layout->period))) {
        return false;
    }
    return period <= PERIOD_MOST && period < count &&
           record_at(layout, layout->count - 1)->live ==
               record_at(layout, layout->count - 1 - period)->live &&
           peak_of_last(layout, period) == peak_of_last(layout, count);
}

/* Returns true while the program only repeats the existing plan. A longer period would then be a
 * coincidence, because the blocks before a disturbance agree with the blocks after it. */
static bool repeats_plan(const struct spw_layout *layout, const uint64_t *symbols, size_t count)
{
    size_t last = SURE_PERIODS * layout->period;

    return layout->places != NULL && count >= last &&
           spw_pool_repetition_is_of(symbols, count, last, layout->period);
}

static size_t find_period(const struct spw_layout *layout)
{
    size_t count = known_blocks(layout);
    /* If there is already a plan, only a longer period is useful. */
    size_t least = layout->places != NULL ? layout->period + 1 : PERIOD_LEAST;
    uint64_t *symbols = malloc((count + 1) * sizeof(*symbols));
    struct searched searched = {layout, symbols, count};
    size_t period = 0;

    for (size_t i = 0; i < count && symbols != NULL; i++) {
        symbols[i] = record_at(layout, layout->count - count + i)->symbol;
    }
    if (symbols != NULL && !repeats_plan(layout, symbols, count)) {
        period = spw_pool_repetition_find(symbols, count, least, is_step, &searched);
    }
    /* If the program no longer repeats the plan's period, the longer period may consist of several
     * new steps. Each later search would then find even more steps. */
    if (period > 0 && layout->places != NULL) {
        period = spw_pool_repetition_part(symbols, count, period, PERIOD_LEAST);
    }
    free(symbols);
    return period;
}

/* Returns the lifetime of a block of the period, in events; 0 if unknown. A block that is still
 * live is expected to live as long as the same block of the previous period did. */
static uint32_t length_of(const struct period *period, size_t i)
{
    const struct spw_layout *layout = period->layout;
    const struct spw_layout_record *record = record_at(layout, period->first + i);

    if (record->died == 0 && period->first + i >= period->count &&
        layout->count - (period->first + i) + period->count <= SPW_LAYOUT_RECORDS) {
        record = record_at(layout, period->first + i - period->count);
    }
    return record->died != 0 ? record->died - record->born : 0;
}

static bool is_planned(const struct period *period, size_t i)
{
    uint32_t length = length_of(period, i);

    return length > 0 && length < period->length;
}

/* Returns true if the block belongs to the period and is planned. */
static bool is_passing(const struct period *period, const struct spw_extent *block)
{
    const struct spw_layout *layout = period->layout;
    uint32_t place = layout->by_id[block->id & RECORDS_MASK];
    uint64_t number = layout->count - 1 - ((layout->count - 1 - place) & RECORDS_MASK);

    return layout->records[place].id == block->id && number >= period->first &&
           is_planned(period, (size_t)(number - period->first));
}

/* Adds the blocks that stay in place, and the addresses that are out of use. If `items` is NULL,
 * only counts them. */
static size_t add_fixed(const struct period *period, struct spw_packing_item *items)
{
    const struct spw_space *space = period->layout->space;
    size_t count = 0;

    for (const struct spw_extent *e = space->heaps[SPW_HEAP_LARGE].first; e != NULL; e = e->next) {
        bool stays =
            e->kind == SPW_EXTENT_CLAIM || (e->kind == SPW_EXTENT_BLOCK && !is_passing(period, e));

        if (stays && items != NULL) {
            items[count] =
                (struct spw_packing_item){.bytes = e->bytes, .address = e->address, .fixed = true};
        }
        count += stays;
    }
    return count;
}

static size_t add_planned(const struct period *period, struct spw_packing_item *items)
{
    size_t count = 0;

    for (size_t i = 0; i < period->count; i++) {
        const struct spw_layout_record *record = record_at(period->layout, period->first + i);

        if (is_planned(period, i)) {
            items[count++] =
                (struct spw_packing_item){.bytes = record->bytes,
                                          .begin = (record->born - period->began) % period->length,
                                          .length = length_of(period, i)};
        }
    }
    return count;
}

/* Returns the bytes of device chunks outside of the heap of small blocks. */
static uint64_t memory_there(const struct spw_space *space)
{
    uint64_t committed = spw_pool_stock_committed(&space->backing->stock), other = 0;

    for (const struct spw_extent *e = space->heaps[SPW_HEAP_SMALL].first; e != NULL; e = e->next) {
        other += e->kind != SPW_EXTENT_HOLE ? e->bytes : 0;
    }
    return committed > other ? committed - other : 0;
}

static void keep_granules(struct spw_layout *layout, bool keep)
{
    for (size_t i = 0; i < layout->period; i++) {
        if (layout->places[i].address != 0) {
            spw_pool_backing_keep(layout->space->backing, layout->places[i].address,
                                  layout->places[i].address + layout->places[i].bytes, keep);
        }
    }
}

static void drop(struct spw_layout *layout)
{
    keep_granules(layout, false);
    free(layout->places);
    layout->places = NULL;
    layout->period = 0;
}

/* Copies the addresses of a packing to the plan. The items are in the order of the period. */
static void adopt(struct spw_layout *layout, const struct period *period,
                  const struct spw_packing_item *items)
{
    struct spw_layout_place *places = calloc(period->count, sizeof(*places));
    uint32_t earliest = UINT32_MAX;

    if (places == NULL) {
        return;
    }
    drop(layout);
    for (size_t i = 0; i < period->count; i++) {
        places[i].bytes = record_at(layout, period->first + i)->bytes;
        if (!is_planned(period, i)) {
            continue;
        }
        places[i].address = items->address;
        if (items->begin < earliest) {
            earliest = items->begin;
            layout->begin = i;
        }
        items++;
    }
    layout->places = places;
    layout->period = period->count;
    layout->next = 0;
    layout->strays = 0;
    layout->followed = false;
    keep_granules(layout, true);
    spw_counter_add(&layout->space->backing->counters->layouts, 1);
}

/* Returns the period that ends with the last block. */
static struct period last_period(const struct spw_layout *layout, size_t count)
{
    uint64_t first = layout->count - count;
    uint32_t began = record_at(layout, first - 1)->born;

    return (struct period){.layout = layout,
                           .first = first,
                           .count = count,
                           .began = began,
                           .length = record_at(layout, layout->count - 1)->born - began};
}

/* Returns true if the lifetimes of all blocks of a period are known. */
static bool is_known(const struct period *period)
{
    size_t i = 0;

    while (i < period->count && length_of(period, i) > 0) {
        i++;
    }
    return i == period->count;
}

static void plan(struct spw_layout *layout, const struct period *period)
{
    const struct spw_heap *heap = &layout->space->heaps[SPW_HEAP_LARGE];
    struct spw_packing packing = {.base = heap->base,
                                  .end = heap->end,
                                  .period = period->length,
                                  .granule_bytes = layout->space->backing->granule_bytes,
                                  .enough_bytes = memory_there(layout->space)};
    size_t fixed = add_fixed(period, NULL);
    uint64_t bytes;
    bool packed;

    packing.items = malloc((fixed + period->count) * sizeof(*packing.items));
    if (packing.items == NULL) {
        return;
    }
    (void)add_fixed(period, packing.items);
    packing.count = fixed + add_planned(period, packing.items + fixed);
    packed = spw_pool_packing_pack(&packing, &bytes);
    if (packed) {
        adopt(layout, period, packing.items + fixed);
    }
    free(packing.items);
}

/* Searches for a period, and makes a plan for it. Not inlined, because this is rare. */
static __attribute__((noinline)) void search(struct spw_layout *layout)
{
    size_t count = find_period(layout);
    struct period period;

    if (count == 0) {
        layout->wanted = false;
        layout->search_at = layout->count + PAUSE_LEAST + known_blocks(layout) / PAUSE_SHARE;
        return;
    }
    period = last_period(layout, count);
    if (!is_known(&period)) {
        layout->search_at = layout->count + count / 8;
        return;
    }
    layout->wanted = false;
    plan(layout, &period);
    layout->search_at = layout->count + 2 * count;
}

/* ---- following ---- */

/* Finds the place in the plan that follows the last recorded sizes. */
static bool find_place(struct spw_layout *layout)
{
    for (size_t i = 0; i < layout->period && layout->count >= SYNC_SYMBOLS; i++) {
        size_t matching = 0;

        while (matching < SYNC_SYMBOLS &&
               layout->places[(i + matching) % layout->period].bytes ==
                   record_at(layout, layout->count - SYNC_SYMBOLS + matching)->bytes) {
            matching++;
        }
        if (matching == SYNC_SYMBOLS) {
            layout->next = (i + SYNC_SYMBOLS) % layout->period;
            return true;
        }
    }
    return false;
}

/* Moves `next` to the place of a block of `bytes`. A few blocks in between may be missing. */
static bool skip_to(struct spw_layout *layout, uint64_t bytes)
{
    for (size_t i = 1; i <= AHEAD_MOST && i < layout->period; i++) {
        size_t at = (layout->next + i) % layout->period;

        if (layout->places[at].bytes == bytes) {
            layout->next = at;
            return true;
        }
    }
    return false;
}

/* Returns true if the plan has a place for a block of `bytes`; `next` is that place. If the program
 * no longer follows the plan, drops it. */
static bool expect(struct spw_layout *layout, uint64_t bytes)
{
    if (layout->places[layout->next].bytes == bytes) {
        layout->strays -= layout->strays > 0;
        return true;
    }
    layout->strays += STRAY_WEIGHT;
    if (layout->strays > layout->period + PAUSE_LEAST) {
        drop(layout);
        layout->since = layout->count;
        return false;
    }
    return skip_to(layout, bytes) ||
           (layout->strays % SYNC_INTERVAL < STRAY_WEIGHT && find_place(layout) &&
            layout->places[layout->next].bytes == bytes);
}

bool spw_pool_layout_next(struct spw_layout *layout, uint64_t bytes, uint64_t *ret_address)
{
    const struct spw_layout_place *place;

    if (layout->space->backing->stock.tiers[SPW_TIER_HOST].total > 0) {
        if (layout->places != NULL) {
            drop(layout);
        }
        return false; /* migration chooses the places then, and plans do not know the tiers */
    }
    if (layout->wanted && layout->count >= layout->search_at) {
        search(layout);
    }
    if (layout->places == NULL) {
        return false;
    }
    if (!expect(layout, bytes)) {
        return false;
    }
    place = &layout->places[layout->next];
    layout->followed = layout->followed || layout->next == layout->begin;
    layout->next = (layout->next + 1) % layout->period;
    *ret_address = place->address;
    return layout->followed && place->address != 0;
}

void spw_pool_layout_fini(struct spw_layout *layout)
{
    free(layout->places);
    if (layout->records != NULL) {
        (void)munmap(layout->records, records_bytes());
    }
}
