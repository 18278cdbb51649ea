#include "oracle.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNKS_MOST = 1 << 22, CHUNK_GONE = 0, CHUNK_SPARE = 1, CHUNK_MAPPED = 2 };

/* A wait in a stream: items above `after` start only when `clock` is complete. */
struct oracle_marker {
    uint64_t after;
    struct oracle_clock clock;
};

/* One free, shared by the units whose last free it is. */
struct oracle_free {
    uint32_t units; /* number of those units; 0: the record is unused */
    uint32_t next_unused;
    int slot; /* -1: after everything in `all` */
    uint64_t number;
    struct oracle_clock *all;
};

struct oracle_fence {
    struct oracle_fence *prev, *next;
    struct oracle_clock clock;
};

/* ---- helpers ---- */

uint64_t oracle_random(struct oracle *oracle, uint64_t bound)
{
    /* splitmix64 */
    uint64_t x = oracle->random += 0x9e3779b97f4a7c15ull;

    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
    return (x ^ (x >> 31)) % bound;
}

void oracle_find(struct oracle *oracle, const char *format, ...)
{
    va_list arguments;

    if (oracle->findings++ == 0) {
        va_start(arguments, format);
        vsnprintf(oracle->first, sizeof(oracle->first), format, arguments);
        va_end(arguments);
    }
}

static void join(struct oracle_clock *clock, const struct oracle_clock *other)
{
    for (int i = 0; i < ORACLE_SLOTS; i++) {
        clock->at[i] = other->at[i] > clock->at[i] ? other->at[i] : clock->at[i];
    }
}

static bool is_complete(const struct oracle *oracle, const struct oracle_clock *clock)
{
    for (int i = 0; i < ORACLE_SLOTS; i++) {
        if (clock->at[i] > oracle->slots[i].completed) {
            return false;
        }
    }
    return true;
}

static struct oracle_clock everything(const struct oracle *oracle)
{
    struct oracle_clock clock;

    for (int i = 0; i < ORACLE_SLOTS; i++) {
        clock.at[i] = oracle->slots[i].submitted;
    }
    return clock;
}

static bool fails(struct oracle *oracle)
{
    bool failing = oracle->failure_odds != 0 && oracle_random(oracle, oracle->failure_odds) == 0;

    oracle->failures += failing;
    return failing;
}

/* ---- streams ---- */

static struct oracle_marker *marker_at(struct oracle_slot *slot, size_t i)
{
    return &slot->markers[(slot->marker_first + i) % slot->marker_capacity];
}

static void marker_push(struct oracle_slot *slot, const struct oracle_clock *clock)
{
    if (slot->marker_count == slot->marker_capacity) {
        size_t capacity = slot->marker_capacity == 0 ? 16 : slot->marker_capacity * 2;
        struct oracle_marker *grown = malloc(capacity * sizeof(*grown));

        for (size_t i = 0; i < slot->marker_count; i++) {
            grown[i] = *marker_at(slot, i);
        }
        free(slot->markers);
        slot->markers = grown;
        slot->marker_first = 0;
        slot->marker_capacity = capacity;
    }
    slot->marker_count++;
    *marker_at(slot, slot->marker_count - 1) =
        (struct oracle_marker){.after = slot->submitted, .clock = *clock};
}

static void pass_markers(struct oracle *oracle, struct oracle_slot *slot)
{
    while (slot->marker_count > 0 && slot->completed >= marker_at(slot, 0)->after &&
           is_complete(oracle, &marker_at(slot, 0)->clock)) {
        slot->marker_first = (slot->marker_first + 1) % slot->marker_capacity;
        slot->marker_count--;
    }
}

static void wait_for_clock(struct oracle *oracle, int slot, const struct oracle_clock *clock)
{
    join(&oracle->slots[slot].now, clock);
    if (!is_complete(oracle, clock)) {
        marker_push(&oracle->slots[slot], clock);
    }
}

static int slot_vacant(struct oracle *oracle)
{
    int found = -1;

    for (int i = 0; i < ORACLE_SLOTS; i++) {
        const struct oracle_slot *slot = &oracle->slots[i];

        if (slot->live) {
            continue;
        }
        if (slot->completed == slot->submitted) {
            return i;
        }
        found = i;
    }
    oracle_complete(oracle, found, oracle->slots[found].submitted);
    return found;
}

int oracle_stream_create(struct oracle *oracle)
{
    struct oracle_slot *slot;
    int i, handle = 0;

    while (handle < ORACLE_HANDLES && oracle->handle_used[handle]) {
        handle++;
    }
    if (handle == ORACLE_HANDLES) {
        return -1;
    }
    i = slot_vacant(oracle);
    slot = &oracle->slots[i];
    slot->stream =
        (struct spw_stream){.id = ++oracle->next_stream_id, .handle = &oracle->handle_used[handle]};
    oracle->handle_used[handle] = true;
    slot->live = true;
    slot->marker_count = 0;
    memset(&slot->now, 0, sizeof(slot->now));
    slot->now.at[i] = slot->submitted;
    return i;
}

void oracle_stream_destroy(struct oracle *oracle, int slot)
{
    oracle->slots[slot].live = false;
    *(bool *)oracle->slots[slot].stream.handle = false;
}

uint64_t oracle_submit(struct oracle *oracle, int slot)
{
    struct oracle_slot *s = &oracle->slots[slot];

    s->now.at[slot] = ++s->submitted;
    return s->submitted;
}

void oracle_order(struct oracle *oracle, int slot, int other)
{
    struct oracle_clock clock = oracle->slots[other].now;

    wait_for_clock(oracle, slot, &clock);
}

void oracle_progress(struct oracle *oracle, int slot)
{
    struct oracle_slot *s = &oracle->slots[slot];
    uint64_t to = s->completed + oracle_random(oracle, s->submitted - s->completed + 1);

    pass_markers(oracle, s);
    while (s->completed < to) {
        uint64_t bound = s->marker_count > 0 ? marker_at(s, 0)->after : UINT64_MAX;

        s->completed = to < bound ? to : bound;
        pass_markers(oracle, s);
        if (s->completed == bound && s->marker_count > 0 && marker_at(s, 0)->after == bound) {
            return;
        }
    }
}

/* Completes what a clock covers. A clock contains everything that its items wait for, so nothing
 * completes out of order. */
static void complete_clock(struct oracle *oracle, const struct oracle_clock *clock)
{
    for (int i = 0; i < ORACLE_SLOTS; i++) {
        struct oracle_slot *slot = &oracle->slots[i];

        slot->completed = clock->at[i] > slot->completed ? clock->at[i] : slot->completed;
    }
    for (int i = 0; i < ORACLE_SLOTS; i++) {
        pass_markers(oracle, &oracle->slots[i]);
    }
}

void oracle_complete(struct oracle *oracle, int slot, uint64_t number)
{
    struct oracle_slot *s = &oracle->slots[slot];
    struct oracle_clock clock = {0};

    for (size_t i = 0; i < s->marker_count && marker_at(s, i)->after < number; i++) {
        join(&clock, &marker_at(s, i)->clock);
    }
    clock.at[slot] = number;
    complete_clock(oracle, &clock);
}

struct oracle_clock oracle_submitted(const struct oracle *oracle, int slot)
{
    return slot >= 0 ? oracle->slots[slot].now : everything(oracle);
}

void oracle_synchronize(struct oracle *oracle, const struct oracle_clock *clock)
{
    complete_clock(oracle, clock);
    join(&oracle->known, clock);
}

/* ---- units ---- */

static size_t unit_of(const struct oracle *oracle, uint64_t address)
{
    return (size_t)((address - oracle->base) / oracle->unit_bytes);
}

static size_t granule_of(const struct oracle *oracle, uint64_t address)
{
    return (size_t)((address - oracle->base) / oracle->granule_bytes);
}

/* True if the free is known to happen before the next item of `slot` (-1: of any stream), from what
 * the pool can know. */
static bool is_before(const struct oracle *oracle, const struct oracle_free *freed, int slot)
{
    const struct oracle_clock *now = slot >= 0 ? &oracle->slots[slot].now : &oracle->known;

    if (freed->slot >= 0) {
        return freed->number <= oracle->known.at[freed->slot] ||
               freed->number <= now->at[freed->slot];
    }
    for (int i = 0; i < ORACLE_SLOTS; i++) {
        if (freed->all->at[i] > oracle->known.at[i] && freed->all->at[i] > now->at[i]) {
            return false;
        }
    }
    return true;
}

/* Judges every unit of [first, last) against the next use by `slot`. */
static void judge_units(struct oracle *oracle, size_t first, size_t last, int slot,
                        const char *what)
{
    uint32_t passed = 0;

    for (size_t i = first; i < last; i++) {
        if (oracle->live[i]) {
            oracle_find(oracle, "%s: unit %zu is under a block", what, i);
            return;
        }
        if (oracle->freed[i] != passed && oracle->freed[i] != 0) {
            passed = oracle->freed[i];
            if (!is_before(oracle, &oracle->frees[passed], slot)) {
                oracle_find(oracle,
                            "%s (stream slot %d): unit %zu was freed on slot %d item %llu, "
                            "which is pending",
                            what, slot, i, oracle->frees[passed].slot,
                            (unsigned long long)oracle->frees[passed].number);
                return;
            }
        }
    }
}

void oracle_judge_alloc(struct oracle *oracle, uint64_t address, uint64_t bytes, int slot)
{
    size_t first = unit_of(oracle, address), last = unit_of(oracle, address + bytes - 1) + 1;
    size_t last_granule = granule_of(oracle, address + bytes - 1);

    if (address % 512 != 0 || address < oracle->base ||
        address + bytes > oracle->base + oracle->bytes) {
        oracle_find(oracle, "a block is not aligned, or outside the arena");
        return;
    }
    judge_units(oracle, first, last, slot, "a block was handed out");
    for (size_t g = granule_of(oracle, address); g <= last_granule; g++) {
        if (oracle->mapped[g] == 0 || !oracle->accessible[g]) {
            oracle_find(oracle, "a block lies on granule %zu, which cannot be accessed", g);
        }
    }
    memset(oracle->live + first, 1, last - first);
}

static uint32_t free_take(struct oracle *oracle)
{
    uint32_t i = oracle->free_unused;

    if (i != 0) {
        oracle->free_unused = oracle->frees[i].next_unused;
        return i;
    }
    if (oracle->free_count == oracle->free_capacity) {
        oracle->free_capacity = oracle->free_capacity == 0 ? 4096 : oracle->free_capacity * 2;
        oracle->frees = realloc(oracle->frees, oracle->free_capacity * sizeof(struct oracle_free));
    }
    return oracle->free_count++;
}

static void free_drop(struct oracle *oracle, uint32_t i)
{
    if (i != 0 && --oracle->frees[i].units == 0) {
        free(oracle->frees[i].all);
        oracle->frees[i].next_unused = oracle->free_unused;
        oracle->free_unused = i;
    }
}

void oracle_note_free(struct oracle *oracle, uint64_t address, uint64_t bytes, int slot,
                      uint64_t number)
{
    size_t first = unit_of(oracle, address), last = unit_of(oracle, address + bytes - 1) + 1;
    uint32_t i = free_take(oracle);

    oracle->frees[i] =
        (struct oracle_free){.units = (uint32_t)(last - first), .slot = slot, .number = number};
    if (slot < 0) {
        oracle->frees[i].all = malloc(sizeof(struct oracle_clock));
        *oracle->frees[i].all = everything(oracle);
    }
    for (size_t unit = first; unit < last; unit++) {
        free_drop(oracle, oracle->freed[unit]);
        oracle->freed[unit] = i;
        oracle->live[unit] = false;
    }
}

size_t oracle_pinned(const struct oracle *oracle)
{
    size_t units = (size_t)(oracle->granule_bytes / oracle->unit_bytes), pinned = 0;

    for (size_t g = 0; g < oracle->bytes / oracle->granule_bytes; g++) {
        pinned += oracle->mapped[g] != 0 && memchr(oracle->live + g * units, 1, units) != NULL;
    }
    return pinned;
}

/* ---- creation ---- */

static const struct spw_vm_ops seam_ops;

void oracle_init(struct oracle *oracle, uint64_t granule_bytes, uint64_t unit_bytes, uint64_t seed)
{
    memset(oracle, 0, sizeof(*oracle));
    oracle->seam.ops = &seam_ops;
    oracle->granule_bytes = granule_bytes;
    oracle->unit_bytes = unit_bytes;
    oracle->random = seed;
    oracle->chunk_state = calloc(CHUNKS_MOST, 1);
    (void)free_take(oracle); /* number 0 stands for none */
}

void oracle_fini(struct oracle *oracle)
{
    if (oracle->chunks != 0) {
        oracle_find(oracle, "%zu chunks are left", oracle->chunks);
    }
    if (oracle->pending != NULL) {
        oracle_find(oracle, "a fence was not given back");
    }
    while (oracle->pending != NULL) {
        oracle->seam.ops->drop(&oracle->seam, oracle->pending);
    }
    for (int i = 0; i < ORACLE_SLOTS; i++) {
        free(oracle->slots[i].markers);
    }
    for (size_t i = 0; i < oracle->bytes / oracle->unit_bytes; i++) {
        free_drop(oracle, oracle->freed[i]);
    }
    free(oracle->frees);
    free(oracle->mapped);
    free(oracle->accessible);
    free(oracle->live);
    free(oracle->freed);
    free(oracle->chunk_state);
}

/* ---- the backend: memory ---- */

static enum spw_err seam_reserve(struct spw_vm *vm, uint64_t bytes, uint64_t *ret_address)
{
    struct oracle *oracle = (struct oracle *)vm;
    size_t granules = (size_t)(bytes / oracle->granule_bytes);
    size_t units = (size_t)(bytes / oracle->unit_bytes);

    oracle->base = 1ull << 40;
    oracle->bytes = bytes;
    oracle->mapped = calloc(granules, sizeof(*oracle->mapped));
    oracle->accessible = calloc(granules, sizeof(*oracle->accessible));
    oracle->live = calloc(units, sizeof(*oracle->live));
    oracle->freed = calloc(units, sizeof(*oracle->freed));
    *ret_address = oracle->base;
    return SPW_OK;
}

static void seam_unreserve(struct spw_vm *vm, uint64_t address, uint64_t bytes)
{
    struct oracle *oracle = (struct oracle *)vm;

    if (address != oracle->base || bytes != oracle->bytes) {
        oracle_find(oracle, "another range is given back than was reserved");
    }
    for (size_t g = 0; g < bytes / oracle->granule_bytes; g++) {
        if (oracle->mapped[g] != 0) {
            oracle_find(oracle, "granule %zu is still mapped when the arena goes", g);
        }
    }
}

static enum spw_err seam_create(struct spw_vm *vm, enum spw_tier tier, uint64_t bytes,
                                uint64_t *ret_chunk)
{
    struct oracle *oracle = (struct oracle *)vm;

    if (fails(oracle) || oracle->chunks >= oracle->most_chunks) {
        return SPW_E_NO_MEMORY;
    }
    if (tier != SPW_TIER_DEVICE || bytes != oracle->granule_bytes ||
        oracle->chunk_numbers == CHUNKS_MOST) {
        oracle_find(oracle, "a chunk of a wrong kind is asked for");
        return SPW_E_INVAL;
    }
    *ret_chunk = oracle->chunk_numbers++;
    oracle->chunk_state[*ret_chunk] = CHUNK_SPARE;
    oracle->chunks++;
    return SPW_OK;
}

static enum spw_err seam_release(struct spw_vm *vm, uint64_t chunk)
{
    struct oracle *oracle = (struct oracle *)vm;

    if (fails(oracle)) {
        return SPW_E_DRIVER - 999;
    }
    if (chunk >= oracle->chunk_numbers || oracle->chunk_state[chunk] != CHUNK_SPARE) {
        oracle_find(oracle, "a chunk is released that is mapped or gone");
        return SPW_E_INVAL;
    }
    oracle->chunk_state[chunk] = CHUNK_GONE;
    oracle->chunks--;
    return SPW_OK;
}

static enum spw_err seam_map(struct spw_vm *vm, uint64_t address, uint64_t bytes, uint64_t chunk)
{
    struct oracle *oracle = (struct oracle *)vm;
    size_t g = granule_of(oracle, address);

    if (fails(oracle)) {
        return SPW_E_DRIVER - 999;
    }
    if (address % oracle->granule_bytes != 0 || bytes != oracle->granule_bytes ||
        address - oracle->base >= oracle->bytes || oracle->mapped[g] != 0 ||
        chunk >= oracle->chunk_numbers || oracle->chunk_state[chunk] != CHUNK_SPARE) {
        oracle_find(oracle, "a map over a mapping, or of a chunk that is mapped or gone");
        return SPW_E_INVAL;
    }
    oracle->mapped[g] = chunk + 1;
    oracle->accessible[g] = false;
    oracle->chunk_state[chunk] = CHUNK_MAPPED;
    return SPW_OK;
}

static enum spw_err seam_set_access(struct spw_vm *vm, uint64_t address, uint64_t bytes,
                                    uint64_t chunk_bytes)
{
    struct oracle *oracle = (struct oracle *)vm;

    if (fails(oracle)) {
        return SPW_E_DRIVER - 999;
    }
    for (size_t g = granule_of(oracle, address); g < granule_of(oracle, address + bytes); g++) {
        if (oracle->mapped[g] == 0) {
            oracle_find(oracle, "access is set on granule %zu, which is not mapped", g);
        }
        if (oracle->accessible[g]) {
            oracle_find(oracle, "access is set again on granule %zu, which may be in use", g);
        }
        oracle->accessible[g] = true;
    }
    return SPW_OK;
}

static enum spw_err seam_share(struct spw_vm *vm, uint64_t address, uint64_t bytes,
                               uint64_t chunk_bytes)
{
    struct oracle *oracle = (struct oracle *)vm;

    if (fails(oracle)) {
        return SPW_E_DRIVER - 999;
    }
    for (size_t g = granule_of(oracle, address); g < granule_of(oracle, address + bytes); g++) {
        if (oracle->mapped[g] == 0) {
            oracle_find(oracle, "granule %zu is shared, which is not mapped", g);
        }
    }
    return SPW_OK;
}

static enum spw_err seam_unmap(struct spw_vm *vm, uint64_t address, uint64_t bytes,
                               uint64_t chunk_bytes, uint64_t *ret_done)
{
    struct oracle *oracle = (struct oracle *)vm;
    size_t units = (size_t)(oracle->granule_bytes / oracle->unit_bytes);
    size_t first = granule_of(oracle, address), last = granule_of(oracle, address + bytes);
    bool failing = fails(oracle);

    oracle->unmaps++;
    if (chunk_bytes != oracle->granule_bytes) {
        oracle_find(oracle, "an unmap with a wrong chunk size");
    }
    if (failing) {
        last = first + (size_t)oracle_random(oracle, last - first);
        *ret_done = (last - first) * oracle->granule_bytes;
    }
    for (size_t g = first; g < last; g++) {
        judge_units(oracle, g * units, (g + 1) * units, -1, "a granule was unmapped");
        if (oracle->mapped[g] == 0) {
            oracle_find(oracle, "granule %zu is unmapped, but not mapped", g);
            continue;
        }
        oracle->chunk_state[oracle->mapped[g] - 1] = CHUNK_SPARE;
        oracle->mapped[g] = 0;
    }
    return failing ? SPW_E_DRIVER - 999 : SPW_OK;
}

/* ---- the backend: order ---- */

/* Returns the slot that a stream handle names now; -1, with a finding, when it names none. */
static int slot_named(struct oracle *oracle, const struct spw_stream *stream)
{
    for (int i = 0; i < ORACLE_SLOTS; i++) {
        const struct oracle_slot *slot = &oracle->slots[i];

        if (slot->live && slot->stream.handle == stream->handle) {
            if (slot->stream.id != stream->id) {
                oracle_find(oracle, "a handle is used that names another stream by now");
            }
            return i;
        }
    }
    oracle_find(oracle, "a stream handle is used that is gone");
    return -1;
}

static enum spw_err seam_fence(struct spw_vm *vm, const struct spw_stream *stream, void **ret_fence)
{
    struct oracle *oracle = (struct oracle *)vm;
    struct oracle_fence *fence;
    int slot = -1;

    if (oracle->capturing || fails(oracle)) {
        return SPW_E_AGAIN;
    }
    if (stream->id != SPW_STREAM_ALL) {
        slot = slot_named(oracle, stream);
        if (slot < 0) {
            return SPW_E_AGAIN;
        }
    }
    fence = calloc(1, sizeof(*fence));
    fence->clock = oracle_submitted(oracle, slot);
    fence->next = oracle->pending;
    if (fence->next != NULL) {
        fence->next->prev = fence;
    }
    oracle->pending = fence;
    oracle->fences++;
    *ret_fence = fence;
    return SPW_OK;
}

static enum spw_err seam_query(struct spw_vm *vm, void *cookie)
{
    struct oracle *oracle = (struct oracle *)vm;
    struct oracle_fence *fence = cookie;

    if (oracle->capturing || fails(oracle)) {
        return SPW_E_AGAIN;
    }
    if (!is_complete(oracle, &fence->clock)) {
        return SPW_E_AGAIN;
    }
    join(&oracle->known, &fence->clock);
    return SPW_OK;
}

static enum spw_err seam_wait_host(struct spw_vm *vm, void *cookie)
{
    struct oracle *oracle = (struct oracle *)vm;
    struct oracle_fence *fence = cookie;

    if (oracle->capturing || fails(oracle)) {
        return SPW_E_AGAIN;
    }
    oracle->waits++;
    oracle_synchronize(oracle, &fence->clock);
    return SPW_OK;
}

static enum spw_err seam_wait_stream(struct spw_vm *vm, const struct spw_stream *stream,
                                     void *cookie)
{
    struct oracle *oracle = (struct oracle *)vm;
    struct oracle_fence *fence = cookie;
    int slot = slot_named(oracle, stream);

    if (slot < 0 || oracle->capturing || fails(oracle)) {
        return SPW_E_AGAIN;
    }
    wait_for_clock(oracle, slot, &fence->clock);
    return SPW_OK;
}

static void seam_drop(struct spw_vm *vm, void *cookie)
{
    struct oracle *oracle = (struct oracle *)vm;
    struct oracle_fence *fence = cookie;

    if (fence->next != NULL) {
        fence->next->prev = fence->prev;
    }
    *(fence->prev != NULL ? &fence->prev->next : &oracle->pending) = fence->next;
    free(fence);
}

static bool seam_defers(struct spw_vm *vm)
{
    (void)vm;
    return false;
}

static const struct spw_vm_ops seam_ops = {
    .reserve = seam_reserve,
    .unreserve = seam_unreserve,
    .create = seam_create,
    .release = seam_release,
    .map = seam_map,
    .set_access = seam_set_access,
    .share = seam_share,
    .unmap = seam_unmap,
    .fence = seam_fence,
    .query = seam_query,
    .wait_host = seam_wait_host,
    .wait_soon = seam_wait_host,
    .wait_stream = seam_wait_stream,
    .drop = seam_drop,
    .defers = seam_defers,
};
