#include "cli/advise/reader.h"

#include "cli/advise/passes.h"
#include "cli/advise/reading.h"
#include "cli/console/messages.h"
#include "common/hash.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TRIES = 64 }; /* the most keys that a search tries in the map of kinds */

/* ---- kinds ---- */

static uint32_t add_kind(struct spw_cli_advise_history *history, uint32_t site, uint64_t bytes)
{
    if (!spw_cli_advise_reserve(history, &history->kinds, history->kind_count,
                                &history->kind_capacity, sizeof(*history->kinds))) {
        return 0;
    }
    history->kinds[history->kind_count] =
        (struct spw_cli_advise_kind){.site = site, .bytes = bytes};
    return (uint32_t)history->kind_count++;
}

static uint32_t kind_of(struct spw_cli_advise_reading *reading, uint32_t site, uint64_t bytes)
{
    uint64_t key = spw_hash_word(bytes) ^ site;

    for (int i = 0; i < TRIES; i++, key++) {
        uint32_t kind = (uint32_t)(uintptr_t)spw_map_get(&reading->numbers, key);

        if (kind == 0) {
            kind = add_kind(reading->history, site, bytes);
            return kind != 0 && spw_map_put(&reading->numbers, key, (void *)(uintptr_t)kind) ? kind
                                                                                             : 0;
        }
        if (reading->history->kinds[kind].site == site &&
            reading->history->kinds[kind].bytes == bytes) {
            return kind;
        }
    }
    return 0;
}

static bool is_large(const struct spw_cli_block *block)
{
    return block->source == SPW_RECORD_POOL && block->bytes >= SPW_CLI_ADVISE_LEAST;
}

/* ---- events ---- */

/* `life` is an index, or SPW_CLI_ADVISE_NONE. */
static void add_change(struct spw_cli_advise_reading *reading, uint32_t life, int64_t bytes)
{
    struct spw_cli_advise_history *history = reading->history;

    if (spw_cli_advise_reserve(history, &history->changes, history->change_count,
                               &history->change_capacity, sizeof(*history->changes))) {
        history->changes[history->change_count++] = (struct spw_cli_advise_change){
            .kind = life != SPW_CLI_ADVISE_NONE ? history->lives[life].kind : 0,
            .life = life,
            .bytes = bytes,
        };
    }
}

/* Adds the life of a new block. A small block has no kind of its own. Returns the life's index, or
 * SPW_CLI_ADVISE_NONE if memory runs out. */
static uint32_t begin_life(struct spw_cli_advise_reading *reading,
                           const struct spw_cli_block *block, uint32_t pass)
{
    struct spw_cli_advise_history *history = reading->history;
    uint32_t kind = is_large(block) ? kind_of(reading, block->site, block->bytes) : 0;
    bool by_backward = spw_cli_advise_is_backward(reading, block->thread);

    if (history->life_count >= SPW_CLI_ADVISE_NONE ||
        !spw_cli_advise_reserve(history, &history->lives, history->life_count,
                                &history->life_capacity, sizeof(*history->lives))) {
        return SPW_CLI_ADVISE_NONE;
    }
    if (kind != 0) {
        history->kinds[kind].by_backward |= by_backward;
        history->kinds[kind].allocs += spw_cli_advise_is_in_second_half(reading);
    }
    history->lives[history->life_count] = (struct spw_cli_advise_life){
        .kind = kind,
        .pass = pass,
        .keeper = SPW_CLI_ADVISE_NONE,
        .by_backward = by_backward,
        .first_change = history->change_count,
        .last_change = SIZE_MAX,
        .born = reading->large,
    };
    spw_cli_advise_add_live(
        reading, &(struct spw_cli_advise_live){block->address, block->bytes, history->life_count});
    return (uint32_t)history->life_count++;
}

/* Returns the bytes of a block that count as live on the device. Spilled memory also counts,
 * because it would be on the device if there were room. Memory that a rule placed on the host does
 * not count. */
static int64_t device_bytes_of(const struct spw_cli_block *block)
{
    if (block->rule == 0) {
        return (int64_t)block->counted;
    }
    return block->host_bytes >= block->bytes || block->host_bytes > block->counted
               ? 0
               : (int64_t)(block->counted - block->host_bytes);
}

static void take_alloc(struct spw_cli_advise_reading *reading, const struct spw_cli_event *event)
{
    const struct spw_cli_block *block =
        spw_cli_state_block(&reading->history->report.state, event->device, event->address);
    bool large = block != NULL && is_large(block);
    bool pooled = block != NULL && block->source == SPW_RECORD_POOL;
    uint32_t life = SPW_CLI_ADVISE_NONE, pass = spw_cli_advise_passes_open(reading, event->thread);

    if (!reading->surveys && (large || (pooled && pass != SPW_CLI_ADVISE_NONE))) {
        life = begin_life(reading, block, pass);
    } else if (large &&
               spw_cli_advise_reserve(reading->history, &reading->sequence, reading->large,
                                      &reading->sequence_capacity, sizeof(*reading->sequence))) {
        reading->sequence[reading->large] = block->site;
    }
    if (block != NULL && !reading->surveys) {
        add_change(reading, life, device_bytes_of(block));
    }
    reading->large += large;
}

/* Ends the life of a block. Returns its index, or SPW_CLI_ADVISE_NONE if the block has no life. */
static uint32_t end_life(struct spw_cli_advise_reading *reading, const struct spw_cli_event *event,
                         const struct spw_cli_block *freed)
{
    struct spw_cli_advise_live *block = spw_cli_advise_find_live(reading, freed->address);
    struct spw_cli_advise_life *life;
    uint32_t index;

    if (block == NULL || block->address != freed->address) {
        return SPW_CLI_ADVISE_NONE;
    }
    index = (uint32_t)block->life;
    life = &reading->history->lives[index];
    life->freed_by_backward = spw_cli_advise_is_backward(reading, event->thread);
    life->last_change = reading->history->change_count;
    life->died = reading->large;
    memmove(block, block + 1,
            (size_t)(reading->live + reading->live_count - block - 1) * sizeof(*block));
    reading->live_count--;
    return index;
}

static void take_free(struct spw_cli_advise_reading *reading, const struct spw_cli_event *event,
                      const struct spw_cli_block *freed)
{
    if (!reading->surveys) {
        add_change(reading, end_life(reading, event, freed), -device_bytes_of(freed));
    }
}

/* A call counts as one read of each block among its arguments, from the argument's address to the
 * block's end, as in the cost model of the simulated GPU. */
static void take_use(struct spw_cli_advise_reading *reading, const struct spw_cli_event *event)
{
    struct spw_cli_advise_history *history = reading->history;
    size_t seen[SPW_RECORD_USED], count = 0;
    double bytes = 0;

    history->has_uses = true;
    reading->kernels += event->more;
    for (unsigned i = 0; !reading->surveys && i < event->used_count; i++) {
        const struct spw_cli_advise_live *block = spw_cli_advise_find_live(reading, event->used[i]);
        uint64_t rest = block != NULL ? block->bytes - (event->used[i] - block->address) : 0;
        size_t k = 0;

        while (block != NULL && k < count && seen[k] != block->life) {
            k++;
        }
        if (block == NULL || k < count) {
            continue;
        }
        seen[count++] = block->life;
        bytes += (double)rest;
        if (spw_cli_advise_is_in_second_half(reading) && history->lives[block->life].kind != 0) {
            history->kinds[history->lives[block->life].kind].uses++;
            history->kinds[history->lives[block->life].kind].link_bytes += rest;
        }
    }
    if (event->more && spw_cli_advise_is_in_second_half(reading)) {
        spw_cli_advise_passes_charge(reading, event, bytes);
    }
}

/* ---- all events ---- */

static void take_name(struct spw_cli_advise_reading *reading, const struct spw_cli_event *event)
{
    if (event->named == SPW_RECORD_NAMED_MARK) {
        spw_cli_advise_passes_mark(reading, event);
    } else if (event->named == SPW_RECORD_NAMED_PASS && !reading->surveys) {
        spw_cli_advise_passes_note(reading, event);
    } else if (event->named == SPW_RECORD_NAMED_OPTION) {
        reading->history->simulated |= spw_cli_advise_begins_with(&event->text, "SPILLWAY_SIM_");
    } else if (event->named == SPW_RECORD_NAMED_THREAD && event->number < UINT16_MAX &&
               spw_cli_advise_reserve(reading->history, &reading->is_backward, event->number,
                                      &reading->thread_capacity, sizeof(*reading->is_backward))) {
        reading->is_backward[event->number] =
            spw_cli_advise_begins_with(&event->text, "pt_autograd");
    }
}

static void take(struct spw_cli_report *report, const struct spw_cli_event *event,
                 const struct spw_cli_block *freed, void *context)
{
    struct spw_cli_advise_reading *reading = context;
    bool ours = event->device == reading->history->device;

    (void)report;
    if (event->kind == SPW_RECORD_NAME) {
        take_name(reading, event);
    } else if (event->kind == SPW_RECORD_STEP) {
        reading->marks += spw_cli_advise_is_in_second_half(reading);
    } else if (event->kind == SPW_RECORD_ALLOC && ours) {
        take_alloc(reading, event);
    } else if (event->kind == SPW_RECORD_FREE && ours && freed != NULL) {
        take_free(reading, event, freed);
    } else if (event->kind == SPW_RECORD_USE && ours) {
        take_use(reading, event);
    }
    if (!spw_cli_advise_is_in_second_half(reading)) {
        reading->half_time = event->time;
        reading->large_before = reading->large;
    }
    reading->end_time = event->time;
}

/* ---- the period ---- */

enum { MISSES_SHARE = 50 }; /* one element in this many may differ */

static bool repeats(const uint32_t *sequence, size_t count, size_t period)
{
    size_t half = count / 2, misses = 0;

    for (size_t i = half > period ? half : period; i < count; i++) {
        misses += sequence[i] != sequence[i - period];
        if (misses > half / MISSES_SHARE) {
            return false;
        }
    }
    return true;
}

/* Returns the shortest period of a sequence, at most half of its length. Nearly all of the
 * sequence's second half must repeat with this period. Returns 0 if there is no period. */
static size_t find_period(const uint32_t *sequence, size_t count)
{
    for (size_t period = 1; period <= count / 2; period++) {
        if (repeats(sequence, count, period)) {
            return period;
        }
    }
    return 0;
}

/* ---- the whole ---- */

static void choose_device(struct spw_cli_advise_history *history)
{
    const struct spw_cli_device *devices = history->report.state.devices;
    int used = 0;

    for (int i = 0; i < SPW_DEVICES_MAX; i++) {
        used += devices[i].live_peak > 0;
        history->device =
            devices[i].live_peak > devices[history->device].live_peak ? i : history->device;
    }
    history->several = used > 1;
}

static bool outlives_a_step(const struct spw_cli_advise_reading *reading,
                            const struct spw_cli_advise_life *life)
{
    size_t died = life->last_change == SIZE_MAX ? reading->large : life->died;

    return reading->period > 0 && died - life->born > reading->period;
}

/* If the recording has no uses, each block is assumed to be written once and read once in its life.
 * A block that outlives a step is assumed to be written and read once in each step. */
static void assume_uses(struct spw_cli_advise_reading *reading)
{
    struct spw_cli_advise_history *history = reading->history;

    for (size_t i = 0; i < history->life_count; i++) {
        const struct spw_cli_advise_life *life = &history->lives[i];
        struct spw_cli_advise_kind *kind = &history->kinds[life->kind];
        uint64_t times = outlives_a_step(reading, life)        ? (uint64_t)(history->steps + 1)
                         : life->born >= reading->large_before ? 1
                                                               : 0;

        kind->uses += 2 * times;
        kind->link_bytes += 2 * times * kind->bytes;
    }
}

static void count_steps(struct spw_cli_advise_reading *reading)
{
    struct spw_cli_advise_history *history = reading->history;
    uint64_t units = reading->end_time - reading->half_time;

    history->marked = reading->marks > 0;
    if (history->marked) {
        history->steps = (double)reading->marks;
    } else if (reading->period > 0) {
        history->steps = (double)(reading->large - reading->large_before) / (double)reading->period;
    }
    if (history->steps > 0) {
        history->step_ns = (uint64_t)((double)(units * SPW_RECORD_UNIT_NS) / history->steps);
        history->kernel_ns = (uint64_t)(reading->kernel_ns / history->steps);
    }
}

/* Judges a kind by its blocks that are allocated in the second half. The first step is longer,
 * because it also allocates the memory that stays. Its blocks may therefore seem to outlive a
 * step. */
static void judge_kinds(struct spw_cli_advise_reading *reading)
{
    struct spw_cli_advise_history *history = reading->history;

    for (size_t i = 0; i < history->life_count; i++) {
        const struct spw_cli_advise_life *life = &history->lives[i];

        if (life->born >= reading->large_before) {
            history->kinds[life->kind].renewed = true;
            history->kinds[life->kind].outlives |= outlives_a_step(reading, life);
        }
    }
}

/* For each kind, sums the bytes at the peak: all bytes, the kept bytes and the saved bytes. */
static void sort_peak(struct spw_cli_advise_reading *reading)
{
    struct spw_cli_advise_history *history = reading->history;

    judge_kinds(reading);
    for (size_t i = 0; i < history->life_count; i++) {
        const struct spw_cli_advise_life *life = &history->lives[i];
        struct spw_cli_advise_kind *kind = &history->kinds[life->kind];
        bool kept = outlives_a_step(reading, life) && (!kind->renewed || kind->outlives);

        if (life->first_change > history->peak_change ||
            life->last_change <= history->peak_change) {
            continue;
        }
        kind->at_peak += kind->bytes;
        kind->kept += kept ? kind->bytes : 0;
        kind->saved += life->freed_by_backward && !life->by_backward ? kind->bytes : 0;
    }
}

static void find_peak(struct spw_cli_advise_history *history)
{
    int64_t live = 0;

    for (size_t i = 0; i < history->change_count; i++) {
        live += history->changes[i].bytes;
        if (live > (int64_t)history->peak) {
            history->peak = (uint64_t)live;
            history->peak_change = i;
        }
    }
}

static bool read_all(struct spw_cli_advise_reading *reading)
{
    struct spw_cli_advise_history *history = reading->history;

    choose_device(history);
    reading->surveys = true;
    spw_cli_report_each(&history->report, take, reading);
    reading->period = find_period(reading->sequence, reading->large);
    reading->half = (history->has_uses ? reading->kernels : reading->large) / 2;
    reading->surveys = false;
    reading->large = reading->large_before = 0;
    reading->kernels = reading->half_time = 0;
    (void)add_kind(history, 0, 0);
    spw_cli_report_each(&history->report, take, reading);
    if (history->out_of_memory) {
        return false;
    }
    spw_cli_advise_passes_finish(reading);
    count_steps(reading);
    if (!history->has_uses) {
        assume_uses(reading);
    }
    find_peak(history);
    sort_peak(reading);
    return true;
}

bool spw_cli_advise_history_open(struct spw_cli_advise_history *history, const char *command,
                                 const char *path, unsigned depth)
{
    struct spw_cli_advise_reading reading = {.history = history,
                                             .depth = depth,
                                             .pass = SPW_CLI_ADVISE_NONE,
                                             .ended = SPW_CLI_ADVISE_NONE};
    bool good;

    memset(history, 0, sizeof(*history));
    if (!spw_cli_report_open(&history->report, command, path)) {
        return false;
    }
    good = read_all(&reading);
    free(reading.numbers.slots);
    free(reading.live);
    free(reading.sequence);
    free(reading.is_backward);
    free(reading.module_ns);
    for (size_t i = 0; i < reading.marked_count; i++) {
        free(reading.marked[i].name);
    }
    free(reading.marked);
    if (!good) {
        spw_cli_complain(command, "%s: not enough memory", path);
        spw_cli_advise_history_close(history);
    }
    return good;
}

void spw_cli_advise_history_close(struct spw_cli_advise_history *history)
{
    spw_cli_report_close(&history->report);
    for (size_t i = 0; i < history->module_count; i++) {
        free(history->modules[i].name);
    }
    free(history->modules);
    free(history->passes);
    free(history->kinds);
    free(history->changes);
    free(history->lives);
    memset(history, 0, sizeof(*history)); /* a compound literal would be a copy on the stack */
}
