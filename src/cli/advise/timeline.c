#include "cli/advise/timeline.h"

#include "common/minmax.h"

#include <stdlib.h>
#include <string.h>

/* A place in the run where recomputing a module changes the live bytes. */
struct spw_cli_advise_cut {
    size_t change; /* the cut is before this change */
    uint32_t pass;
    bool is_again, is_argument; /* the pass runs again; an argument is kept. Else the pass ends */
    int64_t device, host;       /* the bytes that recomputing adds */
};

/* The changes between two cuts. */
struct spw_cli_advise_stretch {
    int64_t device, host; /* the most live bytes */
    size_t device_change, host_change;
    int64_t device_end; /* live bytes at its end */
};

/* ---- making ---- */

/* Returns the bytes of a change that are on the host, if each block of its kind has `host_bytes` on
 * the host. */
static int64_t host_part(const struct spw_cli_advise_history *history,
                         const struct spw_cli_advise_change *change, const uint64_t *host_bytes)
{
    uint64_t bytes = host_bytes != NULL ? host_bytes[change->kind] : 0;
    int64_t most = change->bytes < 0 ? -change->bytes : change->bytes;
    int64_t part = bytes == 0                                    ? 0
                   : bytes >= history->kinds[change->kind].bytes ? most
                   : bytes < (uint64_t)most                      ? (int64_t)bytes
                                                                 : most;

    return change->bytes < 0 ? -part : part;
}

static int compare(const void *left, const void *right)
{
    const struct spw_cli_advise_cut *a = left, *b = right;

    if (a->change != b->change) {
        return a->change < b->change ? -1 : 1;
    }
    if (a->is_again != b->is_again) {
        return a->is_again ? 1 : -1;
    }
    return a->pass < b->pass ? -1 : a->pass > b->pass ? 1 : 0;
}

static void add_cut(struct spw_cli_advise_timeline *timeline, const struct spw_cli_advise_cut *cut)
{
    timeline->cuts[timeline->cut_count++] = *cut;
}

static void find_saved(struct spw_cli_advise_timeline *timeline, const uint64_t *host_bytes)
{
    const struct spw_cli_advise_history *history = timeline->history;

    for (size_t i = 0; i < history->life_count; i++) {
        const struct spw_cli_advise_life *life = &history->lives[i];

        if (life->is_saved) {
            const struct spw_cli_advise_change *change = &history->changes[life->first_change];
            int64_t part = host_part(history, change, host_bytes);

            timeline->saved_device[life->pass] += change->bytes - part;
            timeline->saved_host[life->pass] += part;
        }
    }
}

/* A recomputed pass frees saved memory at its end, and allocates it again in its second run. */
static void cut_at_passes(struct spw_cli_advise_timeline *timeline)
{
    const struct spw_cli_advise_history *history = timeline->history;

    for (size_t i = 0; i < history->pass_count; i++) {
        const struct spw_cli_advise_pass *pass = &history->passes[i];

        if (pass->again_change != SIZE_MAX && pass->last_change != SIZE_MAX) {
            struct spw_cli_advise_cut cut = {.change = pass->last_change,
                                             .pass = (uint32_t)i,
                                             .device = -timeline->saved_device[i],
                                             .host = -timeline->saved_host[i]};

            add_cut(timeline, &cut);
            cut.change = pass->again_change;
            cut.is_again = true;
            cut.device = -cut.device;
            cut.host = -cut.host;
            add_cut(timeline, &cut);
        }
    }
}

/* It also keeps its arguments until its backward pass is done. */
static void cut_at_arguments(struct spw_cli_advise_timeline *timeline, const uint64_t *host_bytes)
{
    const struct spw_cli_advise_history *history = timeline->history;

    for (size_t i = 0; i < history->life_count; i++) {
        const struct spw_cli_advise_life *life = &history->lives[i];

        if (life->keeper != SPW_CLI_ADVISE_NONE) {
            const struct spw_cli_advise_change *change = &history->changes[life->first_change];
            struct spw_cli_advise_cut cut = {
                .change = life->last_change, .pass = life->keeper, .is_argument = true};

            cut.host = host_part(history, change, host_bytes);
            cut.device = change->bytes - cut.host;
            add_cut(timeline, &cut);
            cut.change = history->passes[life->keeper].done_change;
            cut.device = -cut.device;
            cut.host = -cut.host;
            add_cut(timeline, &cut);
        }
    }
}

static size_t most_cuts(const struct spw_cli_advise_history *history)
{
    size_t count = 2 * history->pass_count;

    for (size_t i = 0; i < history->life_count; i++) {
        count += history->lives[i].keeper != SPW_CLI_ADVISE_NONE ? 2 : 0;
    }
    return count;
}

static void find_stretches(struct spw_cli_advise_timeline *timeline, const uint64_t *host_bytes)
{
    const struct spw_cli_advise_history *history = timeline->history;
    int64_t device = 0, host = 0;
    size_t cut = 0;
    struct spw_cli_advise_stretch *stretch = &timeline->stretches[0];

    for (size_t i = 0; i < history->change_count; i++) {
        int64_t part = host_part(history, &history->changes[i], host_bytes);

        while (cut < timeline->cut_count && timeline->cuts[cut].change <= i) {
            stretch->device_end = device;
            stretch = &timeline->stretches[++cut];
            *stretch = (struct spw_cli_advise_stretch){
                .device = device, .host = host, .device_change = i, .host_change = i};
        }
        host += part;
        device += history->changes[i].bytes - part;
        if (device > stretch->device) {
            stretch->device = device;
            stretch->device_change = i;
        }
        if (host > stretch->host) {
            stretch->host = host;
            stretch->host_change = i;
        }
    }
    stretch->device_end = device;
}

bool spw_cli_advise_timeline_make(const struct spw_cli_advise_history *history,
                                  const uint64_t *host_bytes,
                                  struct spw_cli_advise_timeline *ret_timeline)
{
    struct spw_cli_advise_timeline *timeline = ret_timeline;
    size_t passes = history->pass_count, cuts = most_cuts(history);

    *timeline = (struct spw_cli_advise_timeline){
        .history = history,
        .cuts = calloc(cuts + 1, sizeof(*timeline->cuts)),
        .stretches = calloc(cuts + 1, sizeof(*timeline->stretches)),
        .saved_device = calloc(passes + 1, sizeof(*timeline->saved_device)),
        .saved_host = calloc(passes + 1, sizeof(*timeline->saved_host)),
    };
    if (timeline->cuts == NULL || timeline->stretches == NULL || timeline->saved_device == NULL ||
        timeline->saved_host == NULL) {
        return false;
    }
    find_saved(timeline, host_bytes);
    cut_at_passes(timeline);
    cut_at_arguments(timeline, host_bytes);
    qsort(timeline->cuts, timeline->cut_count, sizeof(*timeline->cuts), compare);
    find_stretches(timeline, host_bytes);
    return true;
}

void spw_cli_advise_timeline_fini(struct spw_cli_advise_timeline *timeline)
{
    free(timeline->cuts);
    free(timeline->stretches);
    free(timeline->saved_device);
    free(timeline->saved_host);
}

/* ---- questions ---- */

static void raise_to(int64_t bytes, size_t moment, uint64_t *most, size_t *most_moment)
{
    if (bytes > (int64_t)*most) {
        *most = (uint64_t)bytes;
        *most_moment = moment;
    }
}

struct spw_cli_advise_extent
spw_cli_advise_timeline_extent(const struct spw_cli_advise_timeline *timeline, const bool *again,
                               const bool *maybe)
{
    const struct spw_cli_advise_history *history = timeline->history;
    struct spw_cli_advise_extent extent = {0};
    int64_t device = 0, host = 0; /* that recomputing adds */

    for (size_t i = 0; i <= timeline->cut_count; i++) {
        const struct spw_cli_advise_stretch *stretch = &timeline->stretches[i];
        const struct spw_cli_advise_cut *cut = &timeline->cuts[i];
        const struct spw_cli_advise_pass *pass;
        bool taken;

        raise_to(stretch->device + device, stretch->device_change, &extent.device_bytes,
                 &extent.device_moment);
        raise_to(stretch->host + host, stretch->host_change, &extent.host_bytes,
                 &extent.host_moment);
        if (i == timeline->cut_count || again == NULL) {
            continue;
        }
        pass = &history->passes[cut->pass];
        taken = again[pass->module];
        if (!taken && (maybe == NULL || !maybe[pass->module] || cut->is_argument)) {
            continue;
        }
        if (taken && cut->is_again) {
            raise_to(stretch->device_end + device + (int64_t)pass->work_bytes,
                     history->change_count + cut->pass, &extent.device_bytes,
                     &extent.device_moment);
        }
        device += cut->device;
        host += cut->host;
    }
    return extent;
}

bool spw_cli_advise_timeline_extent_of(const struct spw_cli_advise_history *history,
                                       const uint64_t *host_bytes, const bool *again,
                                       struct spw_cli_advise_extent *ret_extent)
{
    struct spw_cli_advise_timeline timeline;
    bool good = spw_cli_advise_timeline_make(history, host_bytes, &timeline);

    if (good) {
        *ret_extent = spw_cli_advise_timeline_extent(&timeline, again, NULL);
    }
    spw_cli_advise_timeline_fini(&timeline);
    return good;
}

/* Returns the change at a moment in the run. */
static size_t change_of(const struct spw_cli_advise_history *history, size_t moment)
{
    return moment >= history->change_count
               ? history->passes[moment - history->change_count].again_change
               : moment;
}

/* Returns true if recomputing the module frees the saved memory of a pass at this moment. */
static bool is_away(const struct spw_cli_advise_history *history,
                    const struct spw_cli_advise_pass *pass, size_t moment)
{
    bool runs = moment >= history->change_count;
    size_t change = change_of(history, moment);

    return pass->last_change <= change && pass->again_change != SIZE_MAX &&
           (runs ? pass->again_change >= change : pass->again_change > change);
}

/* Returns true if a block is kept at this moment only because its keeper is recomputed. */
static bool is_kept(const struct spw_cli_advise_history *history,
                    const struct spw_cli_advise_life *life, size_t moment)
{
    size_t change = change_of(history, moment);

    return life->keeper != SPW_CLI_ADVISE_NONE && life->last_change <= change &&
           history->passes[life->keeper].done_change > change;
}

void spw_cli_advise_timeline_at(const struct spw_cli_advise_history *history, const bool *again,
                                size_t moment, uint64_t *ret_bytes)
{
    bool runs = moment >= history->change_count;
    size_t end = change_of(history, moment) + !runs;

    memset(ret_bytes, 0, history->kind_count * sizeof(*ret_bytes));
    for (size_t i = 0; i < end && i < history->change_count; i++) {
        ret_bytes[history->changes[i].kind] += (uint64_t)history->changes[i].bytes;
    }
    for (size_t i = 0; again != NULL && i < history->life_count; i++) {
        const struct spw_cli_advise_life *life = &history->lives[i];
        uint64_t bytes = (uint64_t)history->changes[life->first_change].bytes;

        if (life->is_saved && again[history->passes[life->pass].module] &&
            is_away(history, &history->passes[life->pass], moment)) {
            ret_bytes[life->kind] -= bytes;
        }
        if (is_kept(history, life, moment) && again[history->passes[life->keeper].module]) {
            ret_bytes[life->kind] += bytes;
        }
    }
    ret_bytes[0] += runs ? history->passes[moment - history->change_count].work_bytes : 0;
}

/* Writes, for each module, the bytes at a moment that recomputing it would free. */
static void find_gains(const struct spw_cli_advise_timeline *timeline, size_t moment,
                       uint64_t *ret_gains)
{
    const struct spw_cli_advise_history *history = timeline->history;

    memset(ret_gains, 0, history->module_count * sizeof(*ret_gains));
    for (size_t i = 0; i < history->pass_count; i++) {
        if (is_away(history, &history->passes[i], moment)) {
            ret_gains[history->passes[i].module] += (uint64_t)timeline->saved_device[i];
        }
    }
    for (size_t i = 0; i < history->life_count; i++) {
        const struct spw_cli_advise_life *life = &history->lives[i];

        if (is_kept(history, life, moment)) {
            uint64_t *gain = &ret_gains[history->passes[life->keeper].module];

            *gain -= spw_min(*gain, (uint64_t)history->changes[life->first_change].bytes);
        }
    }
}

uint64_t spw_cli_advise_timeline_peak(const void *timeline, const bool *again, const bool *maybe,
                                      uint64_t *ret_gains)
{
    struct spw_cli_advise_extent extent = spw_cli_advise_timeline_extent(timeline, again, maybe);

    if (ret_gains != NULL) {
        find_gains(timeline, extent.device_moment, ret_gains);
    }
    return extent.device_bytes;
}
