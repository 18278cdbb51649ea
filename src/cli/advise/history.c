#include "cli/advise/history.h"

#include "cli/console/messages.h"
#include "common/grow.h"
#include "common/hash.h"

#include <stdlib.h>
#include <string.h>

enum { TRIES = 64 }; /* the most keys that a search tries in the map of kinds */

struct live {
    uint64_t address, bytes;
    size_t life; /* index in the history's lives */
};

/* The recording is read twice. The first reading, a survey, only counts. The second takes every
 * event. */
struct reading {
    struct spw_cli_advise_history *history;
    bool surveys;
    struct spw_map numbers; /* indexes of kinds, by a hash of site and size */
    struct live *live;      /* sorted by address */
    size_t live_count, live_capacity;
    uint32_t *sequence; /* sites of the large allocations; from the survey */
    size_t sequence_capacity;
    size_t large;        /* allocations so far */
    size_t large_before; /* large allocations before the second half */
    size_t period;       /* in large allocations; 0: none */
    uint64_t kernels, half;
    uint64_t half_time, end_time;
    uint64_t marks;    /* of steps in the second half */
    bool *is_backward; /* by thread */
    size_t thread_capacity;
};

/* Grows the list *list, so that it has an element at `index`. */
static bool reserve(struct spw_cli_advise_history *history, void *list, size_t index,
                    size_t *capacity, size_t bytes)
{
    size_t more = *capacity == 0 ? 256 : *capacity;

    if (index < *capacity) {
        return true;
    }
    while (more <= index) {
        more *= 2;
    }
    if (!spw_resize(list, more, bytes)) {
        history->out_of_memory = true;
        return false;
    }
    memset(*(char **)list + *capacity * bytes, 0, (more - *capacity) * bytes);
    *capacity = more;
    return true;
}

/* ---- kinds ---- */

static uint32_t add_kind(struct spw_cli_advise_history *history, uint32_t site, uint64_t bytes)
{
    if (!reserve(history, &history->kinds, history->kind_count, &history->kind_capacity,
                 sizeof(*history->kinds))) {
        return 0;
    }
    history->kinds[history->kind_count] =
        (struct spw_cli_advise_kind){.site = site, .bytes = bytes};
    return (uint32_t)history->kind_count++;
}

static uint32_t kind_of(struct reading *reading, uint32_t site, uint64_t bytes)
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

/* ---- live blocks ---- */

/* Returns the number of live blocks that begin at or before an address. */
static size_t place_of(const struct reading *reading, uint64_t address)
{
    size_t low = 0, high = reading->live_count;

    while (low < high) {
        size_t middle = (low + high) / 2;

        if (reading->live[middle].address <= address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static void add_live(struct reading *reading, const struct live *block)
{
    size_t at = place_of(reading, block->address);

    if (reserve(reading->history, &reading->live, reading->live_count, &reading->live_capacity,
                sizeof(*reading->live))) {
        memmove(reading->live + at + 1, reading->live + at,
                (reading->live_count - at) * sizeof(*reading->live));
        reading->live[at] = *block;
        reading->live_count++;
    }
}

/* Returns the live block that contains an address, or NULL. */
static struct live *find_live(const struct reading *reading, uint64_t address)
{
    size_t at = place_of(reading, address);
    struct live *block = at > 0 ? &reading->live[at - 1] : NULL;

    return block != NULL && address - block->address < block->bytes ? block : NULL;
}

/* ---- events ---- */

static bool is_backward(const struct reading *reading, uint32_t thread)
{
    return thread < reading->thread_capacity && reading->is_backward[thread];
}

static bool is_in_second_half(const struct reading *reading)
{
    return !reading->surveys &&
           (reading->history->has_uses ? reading->kernels : reading->large) >= reading->half;
}

static void add_change(struct reading *reading, uint32_t kind, int64_t bytes)
{
    struct spw_cli_advise_history *history = reading->history;

    if (reserve(history, &history->changes, history->change_count, &history->change_capacity,
                sizeof(*history->changes))) {
        history->changes[history->change_count++] =
            (struct spw_cli_advise_change){.kind = kind, .bytes = bytes};
    }
}

/* Adds the life of a new large block. Returns the kind of the block, or 0 if memory runs out. */
static uint32_t begin_life(struct reading *reading, const struct spw_cli_block *block)
{
    struct spw_cli_advise_history *history = reading->history;
    uint32_t kind = kind_of(reading, block->site, block->bytes);
    bool by_backward = is_backward(reading, block->thread);

    if (kind == 0 || !reserve(history, &history->lives, history->life_count,
                              &history->life_capacity, sizeof(*history->lives))) {
        return 0;
    }
    history->kinds[kind].by_backward |= by_backward;
    history->kinds[kind].allocs += is_in_second_half(reading);
    history->lives[history->life_count] = (struct spw_cli_advise_life){
        .kind = kind,
        .by_backward = by_backward,
        .first_change = history->change_count,
        .last_change = SIZE_MAX,
        .born = reading->large,
    };
    add_live(reading, &(struct live){block->address, block->bytes, history->life_count++});
    return kind;
}

/* Returns the bytes of a block that count as live on the device. */
static int64_t device_bytes_of(const struct spw_cli_block *block)
{
    return block->host_bytes >= block->bytes || block->host_bytes > block->counted
               ? 0
               : (int64_t)(block->counted - block->host_bytes);
}

static void take_alloc(struct reading *reading, const struct spw_cli_event *event)
{
    const struct spw_cli_block *block =
        spw_cli_state_block(&reading->history->report.state, event->device, event->address);
    bool large = block != NULL && is_large(block);
    uint32_t kind = 0;

    if (large && !reading->surveys) {
        kind = begin_life(reading, block);
    } else if (large && reserve(reading->history, &reading->sequence, reading->large,
                                &reading->sequence_capacity, sizeof(*reading->sequence))) {
        reading->sequence[reading->large] = block->site;
    }
    if (block != NULL && !reading->surveys) {
        add_change(reading, kind, device_bytes_of(block));
    }
    reading->large += large;
}

/* Ends the life of a large block. Returns the kind of the block, or 0 if the block is not known. */
static uint32_t end_life(struct reading *reading, const struct spw_cli_event *event,
                         const struct spw_cli_block *freed)
{
    struct live *block = find_live(reading, freed->address);
    struct spw_cli_advise_life *life;

    if (block == NULL || block->address != freed->address) {
        return 0;
    }
    life = &reading->history->lives[block->life];
    life->freed_by_backward = is_backward(reading, event->thread);
    life->last_change = reading->history->change_count;
    life->died = reading->large;
    memmove(block, block + 1,
            (size_t)(reading->live + reading->live_count - block - 1) * sizeof(*block));
    reading->live_count--;
    return life->kind;
}

static void take_free(struct reading *reading, const struct spw_cli_event *event,
                      const struct spw_cli_block *freed)
{
    if (!reading->surveys) {
        uint32_t kind = is_large(freed) ? end_life(reading, event, freed) : 0;

        add_change(reading, kind, -device_bytes_of(freed));
    }
}

/* A call counts as one read of each block among its arguments, from the argument's address to the
 * block's end, as in the cost model of the simulated GPU. */
static void take_use(struct reading *reading, const struct spw_cli_event *event)
{
    struct spw_cli_advise_history *history = reading->history;
    size_t seen[SPW_RECORD_USED], count = 0;

    history->has_uses = true;
    reading->kernels += event->more;
    for (unsigned i = 0; is_in_second_half(reading) && i < event->used_count; i++) {
        const struct live *block = find_live(reading, event->used[i]);
        struct spw_cli_advise_kind *kind;
        size_t k = 0;

        while (block != NULL && k < count && seen[k] != block->life) {
            k++;
        }
        if (block == NULL || k < count) {
            continue;
        }
        seen[count++] = block->life;
        kind = &history->kinds[history->lives[block->life].kind];
        kind->uses++;
        kind->link_bytes += block->bytes - (event->used[i] - block->address);
    }
}

static bool begins_with(const struct spw_cli_text *text, const char *prefix)
{
    return text->length >= strlen(prefix) && memcmp(text->bytes, prefix, strlen(prefix)) == 0;
}

static void take_name(struct reading *reading, const struct spw_cli_event *event)
{
    if (event->named == SPW_RECORD_NAMED_OPTION) {
        reading->history->simulated |= begins_with(&event->text, "SPILLWAY_SIM_");
    } else if (event->named == SPW_RECORD_NAMED_THREAD && event->number < UINT16_MAX &&
               reserve(reading->history, &reading->is_backward, event->number,
                       &reading->thread_capacity, sizeof(*reading->is_backward))) {
        reading->is_backward[event->number] = begins_with(&event->text, "pt_autograd");
    }
}

static void take(struct spw_cli_report *report, const struct spw_cli_event *event,
                 const struct spw_cli_block *freed, void *context)
{
    struct reading *reading = context;
    bool ours = event->device == reading->history->device;

    (void)report;
    if (event->kind == SPW_RECORD_NAME) {
        take_name(reading, event);
    } else if (event->kind == SPW_RECORD_STEP) {
        reading->marks += is_in_second_half(reading);
    } else if (event->kind == SPW_RECORD_ALLOC && ours) {
        take_alloc(reading, event);
    } else if (event->kind == SPW_RECORD_FREE && ours && freed != NULL) {
        take_free(reading, event, freed);
    } else if (event->kind == SPW_RECORD_USE && ours) {
        take_use(reading, event);
    }
    if (!is_in_second_half(reading)) {
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

/* Returns the shortest period of a sequence. Nearly all of the sequence's second half must repeat
 * with this period. The period is at most half as long as the sequence. Returns 0 if there is
 * none. */
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

static bool outlives_a_step(const struct reading *reading, const struct spw_cli_advise_life *life)
{
    size_t died = life->last_change == SIZE_MAX ? reading->large : life->died;

    return reading->period > 0 && died - life->born > reading->period;
}

/* If the recording has no uses, each block is assumed to be written once and read once in its life.
 * A block that outlives a step is assumed to be written and read once in each step. */
static void assume_uses(struct reading *reading)
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

static void count_steps(struct reading *reading)
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
    }
}

/* Judges a kind by its blocks that are allocated in the second half. A block that is allocated in
 * the first step may seem to outlive a step, because the first step also allocates the memory that
 * stays and is therefore longer. */
static void judge_kinds(struct reading *reading)
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
static void sort_peak(struct reading *reading)
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

static bool read_all(struct reading *reading)
{
    struct spw_cli_advise_history *history = reading->history;
    struct spw_cli_advise_extent extent;

    choose_device(history);
    reading->surveys = true;
    spw_cli_report_each(&history->report, take, reading);
    reading->period = find_period(reading->sequence, reading->large);
    reading->half = (history->has_uses ? reading->kernels : reading->large) / 2;
    reading->surveys = false;
    reading->large = 0;
    reading->kernels = 0;
    (void)add_kind(history, 0, 0);
    spw_cli_report_each(&history->report, take, reading);
    if (history->out_of_memory) {
        return false;
    }
    count_steps(reading);
    if (!history->has_uses) {
        assume_uses(reading);
    }
    extent = spw_cli_advise_history_extent(history, NULL);
    history->peak = extent.device_bytes;
    history->peak_change = extent.device_change;
    sort_peak(reading);
    return true;
}

bool spw_cli_advise_history_open(struct spw_cli_advise_history *history, const char *command,
                                 const char *path)
{
    struct reading reading = {.history = history};
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
    if (!good) {
        spw_cli_complain(command, "%s: not enough memory", path);
        spw_cli_advise_history_close(history);
    }
    return good;
}

void spw_cli_advise_history_close(struct spw_cli_advise_history *history)
{
    spw_cli_report_close(&history->report);
    free(history->kinds);
    free(history->changes);
    free(history->lives);
    history->kinds = NULL;
    history->changes = NULL;
    history->lives = NULL;
}

/* Returns the bytes of a change that are on the host, if each block of its kind has `host_bytes` on
 * the host. */
static int64_t host_part(const struct spw_cli_advise_history *history,
                         const struct spw_cli_advise_change *change, uint64_t host_bytes)
{
    int64_t most = change->bytes < 0 ? -change->bytes : change->bytes;
    int64_t part = host_bytes == 0                                    ? 0
                   : host_bytes >= history->kinds[change->kind].bytes ? most
                   : host_bytes < (uint64_t)most                      ? (int64_t)host_bytes
                                                                      : most;

    return change->bytes < 0 ? -part : part;
}

struct spw_cli_advise_extent
spw_cli_advise_history_extent(const struct spw_cli_advise_history *history,
                              const uint64_t *host_bytes)
{
    struct spw_cli_advise_extent extent = {0};
    int64_t device = 0, host = 0;

    for (size_t i = 0; i < history->change_count; i++) {
        const struct spw_cli_advise_change *change = &history->changes[i];

        int64_t part =
            host_bytes != NULL ? host_part(history, change, host_bytes[change->kind]) : 0;

        host += part;
        device += change->bytes - part;
        if (device > (int64_t)extent.device_bytes) {
            extent.device_bytes = (uint64_t)device;
            extent.device_change = i;
        }
        if (host > (int64_t)extent.host_bytes) {
            extent.host_bytes = (uint64_t)host;
            extent.host_change = i;
        }
    }
    return extent;
}

void spw_cli_advise_history_at(const struct spw_cli_advise_history *history, size_t change,
                               uint64_t *ret_bytes)
{
    memset(ret_bytes, 0, history->kind_count * sizeof(*ret_bytes));
    for (size_t i = 0; i <= change && i < history->change_count; i++) {
        ret_bytes[history->changes[i].kind] += (uint64_t)history->changes[i].bytes;
    }
}
