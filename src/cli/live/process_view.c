#include "cli/live/views.h"

#include "callsite/top_sites.h"
#include "cli/console/messages.h"
#include "common/host_bound.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>

enum { BAR_MOST = 60, BAR_LEAST = 12, NARROW = 64 };

/* The process's rank in its job, as words; "": it has none. */
static const char *rank_text(const struct spw_cli_watched *watched, char ret_text[32])
{
    ret_text[0] = '\0';
    if (watched->rank >= 0) {
        snprintf(ret_text, 32, ", rank %" PRId64, watched->rank);
    }
    return ret_text;
}

/* ---- text ---- */

static void put_pair(struct spw_cli_screen *screen, const char *name, const _Atomic uint64_t *now,
                     const _Atomic uint64_t *peak, const char *more)
{
    spw_cli_screen_line(screen, SPW_CLI_STYLE_PLAIN, "  %-10s %12s   peak %12s%s", name,
                        spw_cli_size(spw_counter_get(now)), spw_cli_size(spw_counter_get(peak)),
                        more);
}

/* A bar as long as the limit: memory in use, then other committed memory. */
static void put_bar(struct spw_cli_screen *screen, const struct spw_counters *counters)
{
    double limit = (double)spw_counter_get(&counters->limit_bytes);
    double committed = (double)spw_counter_get(&counters->committed_bytes);
    double used = (double)spw_counter_get(&counters->live_bytes) -
                  (double)spw_counter_get(&counters->host_used_bytes);
    int width = screen->columns > 0 ? screen->columns - 14 : BAR_MOST;

    if (limit <= 0) {
        return;
    }
    used = used < 0 ? 0 : used > committed ? committed : used;
    width = width > BAR_MOST ? BAR_MOST : width < BAR_LEAST ? BAR_LEAST : width;
    spw_cli_screen_add(screen, SPW_CLI_STYLE_PLAIN, "  ");
    spw_cli_screen_bar(screen, width, used, committed - used, limit);
    spw_cli_screen_add(screen, SPW_CLI_STYLE_PLAIN, " %3.0f %%", committed / limit * 100);
    spw_cli_screen_end(screen);
}

static void put_rates(struct spw_cli_screen *screen, const struct spw_cli_watched *watched,
                      int device)
{
    const struct spw_counters *counters = &watched->now.counters[device];
    uint64_t out = SPW_CLI_RATE(watched, device, spilled_bytes);
    uint64_t back = SPW_CLI_RATE(watched, device, promoted_bytes);
    uint64_t refused = spw_counter_get(&counters->ooms);

    spw_cli_screen_add(screen, SPW_CLI_STYLE_PLAIN,
                       "  %-10s %12" PRIu64 " allocations, %" PRIu64 " frees, ", "per second",
                       SPW_CLI_RATE(watched, device, allocs), SPW_CLI_RATE(watched, device, frees));
    spw_cli_screen_add(screen, out + back > 0 ? SPW_CLI_STYLE_WARNING : SPW_CLI_STYLE_PLAIN,
                       "%s to the host, %s back", spw_cli_size(out), spw_cli_size(back));
    spw_cli_screen_end(screen);
    spw_cli_screen_add(screen, SPW_CLI_STYLE_PLAIN,
                       "  %-10s %12" PRIu64 " allocations, %" PRIu64 " steals, %" PRIu64 " moves, ",
                       "so far", spw_counter_get(&counters->allocs),
                       spw_counter_get(&counters->steals), spw_counter_get(&counters->moves));
    spw_cli_screen_add(screen, refused > 0 ? SPW_CLI_STYLE_BAD : SPW_CLI_STYLE_PLAIN,
                       "%" PRIu64 " out of memory", refused);
    spw_cli_screen_end(screen);
}

static void put_figures(struct spw_cli_screen *screen, const struct spw_cli_watched *watched,
                        int device)
{
    const struct spw_counters *counters = &watched->now.counters[device];
    char more[96];

    spw_cli_screen_line(screen, SPW_CLI_STYLE_TITLE, "device %d, limit %s", device,
                        spw_cli_size(spw_counter_get(&counters->limit_bytes)));
    put_bar(screen, counters);
    put_pair(screen, "live", &counters->live_bytes, &counters->live_peak_bytes, "");
    put_pair(screen, "committed", &counters->committed_bytes, &counters->committed_peak_bytes, "");
    if (spw_counter_get(&counters->host_limit_bytes) > 0) {
        snprintf(more, sizeof(more), "   limit %12s (%s)",
                 spw_cli_size(spw_counter_get(&counters->host_limit_bytes)),
                 spw_host_bound_text(spw_counter_get(&counters->host_bound)));
    } else if (spw_counter_get(&counters->one_memory_bytes) > 0) {
        snprintf(more, sizeof(more), "   one memory with the device");
    } else {
        snprintf(more, sizeof(more), "   not used yet"); /* the first use sets the limit */
    }
    put_pair(screen, "host", &counters->host_bytes, &counters->host_peak_bytes, more);
    snprintf(more, sizeof(more), "   locked by the program, %" PRIu64 " times per second",
             SPW_CLI_RATE(watched, device, pinned_allocs));
    put_pair(screen, "pinned", &counters->pinned_bytes, &counters->pinned_peak_bytes, more);
    spw_cli_screen_line(screen, SPW_CLI_STYLE_PLAIN, "  %-10s %12s   allocated by the driver",
                        "passed", spw_cli_size(spw_counter_get(&counters->passed_bytes)));
    put_rates(screen, watched, device);
}

static void put_sites(struct spw_cli_screen *screen, const struct spw_callsite_shm *share,
                      int device)
{
    bool narrow = screen->columns > 0 && screen->columns < NARROW;
    struct spw_callsite_holding holding;

    if (share == NULL || (uint32_t)device >= share->devices) {
        return;
    }
    spw_callsite_holding(&share->charges[device], 0, &holding);
    spw_cli_screen_line(screen, SPW_CLI_STYLE_PLAIN, "  held by %" PRIu64 " call site%s%s",
                        holding.sites, holding.sites == 1 ? "" : "s",
                        holding.sites > SPW_CALLSITE_HOLDERS ? ", most by these" : "");
    if (holding.count > 0) {
        spw_cli_screen_line(screen, SPW_CLI_STYLE_HEADING, "  %12s %s %s  %s", "BYTES", "  SHARE",
                            narrow ? "" : "        BLOCKS", "SITE");
    }
    for (int i = 0; i < holding.count; i++) {
        const struct spw_callsite_holder *holder = &holding.holders[i];
        uint64_t permille = holding.bytes > 0
                                ? (uint64_t)((double)holder->bytes / (double)holding.bytes * 1000)
                                : 0;

        spw_cli_screen_add(screen, SPW_CLI_STYLE_PLAIN, "  %12s %3" PRIu64 ".%" PRIu64 " %% ",
                           spw_cli_size(holder->bytes), permille / 10, permille % 10);
        if (!narrow) {
            spw_cli_screen_add(screen, SPW_CLI_STYLE_PLAIN, " %7" PRIu64 " block%s ",
                               holder->blocks, holder->blocks == 1 ? " " : "s");
        }
        spw_cli_screen_add(screen, SPW_CLI_STYLE_PLAIN, " ");
        spw_cli_screen_add_ends(screen, holder->label);
        spw_cli_screen_end(screen);
    }
}

void spw_cli_process_view(struct spw_cli_screen *screen, const struct spw_cli_watched *watched,
                          const struct spw_callsite_shm *share)
{
    bool any = false;
    char rank[32];

    spw_cli_screen_line(screen, SPW_CLI_STYLE_TITLE, "%s (pid %d%s), %smode %s%s%s",
                        watched->process, watched->pid, rank_text(watched, rank),
                        watched->simulated ? "simulated GPU, " : "", watched->mode,
                        watched->policy[0] != '\0' ? ", policy " : "", watched->policy);
    if (watched->control >= SPW_CONTROL_PAUSED_IN_PART) {
        spw_cli_screen_line(screen, SPW_CLI_STYLE_WARNING, "paused%s",
                            watched->control == SPW_CONTROL_PAUSED_IN_PART ? " in part"
                            : watched->control == SPW_CONTROL_PAUSED_ON_DEMAND
                                ? " until it needs the device"
                                : ": spillway resume lets it go on");
    }
    screen->fixed = screen->count;
    for (int i = 0; i < watched->device_count; i++) {
        if (spw_cli_watched_uses(watched, i)) {
            spw_cli_screen_line(screen, SPW_CLI_STYLE_PLAIN, "%s", "");
            put_figures(screen, watched, i);
            put_sites(screen, share, i);
            any = true;
        }
    }
    if (!any) {
        spw_cli_screen_line(screen, SPW_CLI_STYLE_PLAIN, "no device memory is used yet");
    }
}

/* ---- JSON ---- */

static void add_sites(cJSON *device, const struct spw_callsite_shm *share, int ordinal)
{
    cJSON *rows = cJSON_AddArrayToObject(device, "sites");
    struct spw_callsite_holding holding;

    if ((uint32_t)ordinal >= share->devices) {
        return;
    }
    spw_callsite_holding(&share->charges[ordinal], 0, &holding);
    for (int i = 0; i < holding.count; i++) {
        cJSON *row = cJSON_CreateObject();

        cJSON_AddNumberToObject(row, "id", holding.holders[i].site);
        spw_cli_json_add(row, "bytes", holding.holders[i].bytes);
        spw_cli_json_add(row, "blocks", holding.holders[i].blocks);
        cJSON_AddStringToObject(row, "label", holding.holders[i].label);
        cJSON_AddItemToArray(rows, row);
    }
}

static void add_device(cJSON *devices, const struct spw_cli_watched *watched,
                       const struct spw_callsite_shm *share, int ordinal)
{
    const struct spw_counters *counters = &watched->now.counters[ordinal];
    cJSON *device = cJSON_CreateObject();
    cJSON *rates;

    cJSON_AddNumberToObject(device, "ordinal", ordinal);
#define SPW_COUNTER(name, kind, help)                                                              \
    spw_cli_json_add(device, #name, spw_counter_get(&counters->name));
#include "common/counters.def"
#undef SPW_COUNTER
    rates = cJSON_AddObjectToObject(device, "per_second");
    spw_cli_json_add(rates, "allocs", SPW_CLI_RATE(watched, ordinal, allocs));
    spw_cli_json_add(rates, "frees", SPW_CLI_RATE(watched, ordinal, frees));
    spw_cli_json_add(rates, "pinned_allocs", SPW_CLI_RATE(watched, ordinal, pinned_allocs));
    spw_cli_json_add(rates, "spilled_bytes", SPW_CLI_RATE(watched, ordinal, spilled_bytes));
    spw_cli_json_add(rates, "promoted_bytes", SPW_CLI_RATE(watched, ordinal, promoted_bytes));
    if (share != NULL) {
        add_sites(device, share, ordinal);
    } else {
        cJSON_AddArrayToObject(device, "sites");
    }
    cJSON_AddItemToArray(devices, device);
}

void spw_cli_process_json(cJSON *object, const struct spw_cli_watched *watched,
                          const struct spw_callsite_shm *share)
{
    cJSON *devices;

    cJSON_AddNumberToObject(object, "pid", watched->pid);
    if (watched->rank >= 0) {
        cJSON_AddNumberToObject(object, "rank", (double)watched->rank);
    } else {
        cJSON_AddNullToObject(object, "rank");
    }
    cJSON_AddStringToObject(object, "process", watched->process);
    cJSON_AddStringToObject(object, "mode", watched->mode);
    cJSON_AddBoolToObject(object, "simulated", watched->simulated);
    cJSON_AddBoolToObject(object, "paused", watched->control >= SPW_CONTROL_PAUSED);
    cJSON_AddStringToObject(object, "policy", watched->policy);
    cJSON_AddNumberToObject(object, "seconds",
                            (double)(watched->now.time_ms - watched->before.time_ms) / 1000);
    devices = cJSON_AddArrayToObject(object, "devices");
    for (int i = 0; i < watched->device_count; i++) {
        add_device(devices, watched, share, i);
    }
}

void spw_cli_time_json(cJSON *object)
{
    char text[64], day[32];
    struct timespec now;
    struct tm parts;

    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &parts);
    strftime(day, sizeof(day), "%Y-%m-%dT%H:%M:%S", &parts);
    snprintf(text, sizeof(text), "%s.%03ldZ", day, now.tv_nsec / 1000000);
    cJSON_AddStringToObject(object, "time", text);
}
