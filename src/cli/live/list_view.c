#include "cli/live/views.h"

#include "cli/console/messages.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CELL = 64, BAR = 9, GAP = 1, MARK = 2, PROCESS_LEAST = 12 };

const char *spw_cli_sort_name(enum spw_cli_sort sort)
{
    static const char *const names[] = {"live", "host", "rate", "rank", "pid"};

    return sort < SPW_CLI_SORT_COUNT ? names[sort] : NULL;
}

struct sums {
    double live, used, committed, limit, peak, host, moved, allocs;
};

static void add_up(const struct spw_cli_watched *watched, struct sums *ret_sums)
{
    memset(ret_sums, 0, sizeof(*ret_sums));
    for (int i = 0; i < watched->device_count; i++) {
        const struct spw_counters *counters = &watched->now.counters[i];
        double live = (double)spw_counter_get(&counters->live_bytes);

        if (spw_cli_watched_uses(watched, i)) {
            ret_sums->live += live;
            ret_sums->used += live - (double)spw_counter_get(&counters->host_used_bytes);
            ret_sums->committed += (double)spw_counter_get(&counters->committed_bytes);
            ret_sums->limit += (double)spw_counter_get(&counters->limit_bytes);
            ret_sums->peak += (double)spw_counter_get(&counters->live_peak_bytes);
            ret_sums->host += (double)spw_counter_get(&counters->host_bytes);
            ret_sums->moved += (double)SPW_CLI_RATE(watched, i, spilled_bytes) +
                               (double)SPW_CLI_RATE(watched, i, promoted_bytes);
            ret_sums->allocs += (double)SPW_CLI_RATE(watched, i, allocs);
        }
    }
    ret_sums->used = ret_sums->used < 0                     ? 0
                     : ret_sums->used > ret_sums->committed ? ret_sums->committed
                                                            : ret_sums->used;
}

/* ---- order ---- */

static enum spw_cli_sort sort_now; /* for qsort */

static double key_of(const struct spw_cli_watched *watched)
{
    struct sums sums;

    add_up(watched, &sums);
    switch (sort_now) {
    case SPW_CLI_SORT_LIVE:
        return -sums.live;
    case SPW_CLI_SORT_HOST:
        return -sums.host;
    case SPW_CLI_SORT_RATE:
        return -sums.moved;
    case SPW_CLI_SORT_RANK:
        return watched->rank >= 0 ? (double)watched->rank : (double)INT32_MAX + 1;
    default:
        return 0;
    }
}

static int compare(const void *a, const void *b)
{
    const struct spw_cli_watched *first = *(struct spw_cli_watched *const *)a;
    const struct spw_cli_watched *second = *(struct spw_cli_watched *const *)b;
    double one = key_of(first), other = key_of(second);

    return one < other   ? -1
           : one > other ? 1
                         : (first->pid > second->pid) - (first->pid < second->pid);
}

void spw_cli_list_sort(struct spw_cli_running *running, enum spw_cli_sort sort)
{
    sort_now = sort;
    qsort(running->list, (size_t)running->count, sizeof(running->list[0]), compare);
}

/* ---- columns ---- */

enum column { PID, RANK, MODE, GPUS, LIVE, PEAK, FULL, HOST, ALLOCS, MOVED, COLUMNS };

/* A further column with the program's name takes the rest of the line. */
static const struct {
    const char *heading;
    int width;
    int need; /* columns with a low number are left out first */
} columns[COLUMNS] = {
    [PID] = {"PID", 7, 100},       [RANK] = {"RANK", 5, 70},  [MODE] = {"MODE", 8, 55},
    [GPUS] = {"GPU", 5, 30},       [LIVE] = {"LIVE", 10, 90}, [PEAK] = {"PEAK", 10, 10},
    [FULL] = {"FULL", BAR, 50},    [HOST] = {"HOST", 10, 80}, [ALLOCS] = {"ALLOC/S", 8, 20},
    [MOVED] = {"MOVED/S", 10, 60},
};

static void choose(int width, bool ret_shown[COLUMNS])
{
    int used = MARK + PROCESS_LEAST;

    for (int i = 0; i < COLUMNS; i++) {
        ret_shown[i] = true;
        used += columns[i].width + GAP;
    }
    while (width > 0 && used > width) {
        int least = -1;

        for (int i = 0; i < COLUMNS; i++) {
            if (ret_shown[i] && (least < 0 || columns[i].need < columns[least].need)) {
                least = i;
            }
        }
        if (least < 0) {
            return;
        }
        ret_shown[least] = false;
        used -= columns[least].width + GAP;
    }
}

/* Writes the ordinals of the devices in use ("0", "0-7" or "0,2"), or their number ("3/8"). */
static void write_gpus(const struct spw_cli_watched *watched, char ret_cell[CELL])
{
    int first = -1, last = -1, count = 0;

    for (int i = 0; i < watched->device_count; i++) {
        if (spw_cli_watched_uses(watched, i)) {
            first = first < 0 ? i : first;
            last = i;
            count++;
        }
    }
    if (count == 0) {
        snprintf(ret_cell, CELL, "-");
    } else if (count == 1) {
        snprintf(ret_cell, CELL, "%d", first);
    } else if (count == last - first + 1) {
        snprintf(ret_cell, CELL, "%d-%d", first, last);
    } else if (count == 2) {
        snprintf(ret_cell, CELL, "%d,%d", first, last);
    } else {
        snprintf(ret_cell, CELL, "%d/%d", count, watched->device_count);
    }
}

static void write_size(double bytes, char ret_cell[CELL])
{
    snprintf(ret_cell, CELL, "%s", bytes >= 1.8e19 ? "?" : spw_cli_size((uint64_t)bytes));
}

static void write_cell(enum column column, const struct spw_cli_watched *watched,
                       const struct sums *sums, char ret_cell[CELL])
{
    switch (column) {
    case PID:
        snprintf(ret_cell, CELL, "%d", watched->pid);
        break;
    case RANK:
        snprintf(ret_cell, CELL, watched->rank >= 0 ? "%" PRId64 : "-", watched->rank);
        break;
    case MODE:
        snprintf(ret_cell, CELL, "%.*s", columns[MODE].width, watched->mode);
        break;
    case GPUS:
        write_gpus(watched, ret_cell);
        break;
    case LIVE:
        write_size(sums->live, ret_cell);
        break;
    case PEAK:
        write_size(sums->peak, ret_cell);
        break;
    case HOST:
        write_size(sums->host, ret_cell);
        break;
    case ALLOCS:
        snprintf(ret_cell, CELL, "%.0f", sums->allocs);
        break;
    default:
        write_size(sums->moved, ret_cell);
        break;
    }
}

static void put_row(struct spw_cli_screen *screen, const struct spw_cli_watched *watched,
                    const bool shown[COLUMNS], bool chosen)
{
    struct sums sums;
    char cell[CELL];

    add_up(watched, &sums);
    spw_cli_screen_add(screen, chosen ? SPW_CLI_STYLE_CHOSEN : SPW_CLI_STYLE_PLAIN, "%s",
                       chosen ? "> " : "  ");
    for (int i = 0; i < COLUMNS; i++) {
        if (!shown[i]) {
            continue;
        }
        if (i == FULL) {
            spw_cli_screen_bar(screen, BAR, sums.used, sums.committed - sums.used, sums.limit);
            spw_cli_screen_add(screen, SPW_CLI_STYLE_PLAIN, " ");
            continue;
        }
        write_cell((enum column)i, watched, &sums, cell);
        spw_cli_screen_add(screen,
                           (i == HOST && sums.host > 0) || (i == MOVED && sums.moved > 0)
                               ? SPW_CLI_STYLE_WARNING
                               : SPW_CLI_STYLE_PLAIN,
                           i == MODE ? "%-*s " : "%*s ", columns[i].width, cell);
    }
    spw_cli_screen_add(screen, SPW_CLI_STYLE_PLAIN, "%s", watched->process);
    spw_cli_screen_end(screen);
}

static void put_head(struct spw_cli_screen *screen, const struct spw_cli_running *running,
                     enum spw_cli_sort sort, const bool shown[COLUMNS])
{
    spw_cli_screen_line(screen, SPW_CLI_STYLE_TITLE, "%d process%s under spillway%s, by %s",
                        running->count, running->count == 1 ? "" : "es",
                        running->full ? " and more" : "", spw_cli_sort_name(sort));
    spw_cli_screen_add(screen, SPW_CLI_STYLE_HEADING, "  ");
    for (int i = 0; i < COLUMNS; i++) {
        if (shown[i]) {
            spw_cli_screen_add(screen, SPW_CLI_STYLE_HEADING,
                               i == MODE || i == FULL ? "%-*s " : "%*s ", columns[i].width,
                               columns[i].heading);
        }
    }
    spw_cli_screen_add(screen, SPW_CLI_STYLE_HEADING, "PROCESS");
    spw_cli_screen_end(screen);
}

int spw_cli_list_view(struct spw_cli_screen *screen, const struct spw_cli_running *running,
                      enum spw_cli_sort sort, int chosen)
{
    bool shown[COLUMNS];
    int line = -1;

    choose(screen->columns, shown);
    put_head(screen, running, sort, shown);
    screen->fixed = screen->count;
    for (int i = 0; i < running->count; i++) {
        const struct spw_cli_watched *watched = running->list[i];

        if (watched->pid == chosen) {
            line = screen->count;
        }
        put_row(screen, watched, shown, watched->pid == chosen);
    }
    if (running->count == 0) {
        spw_cli_screen_line(screen, SPW_CLI_STYLE_PLAIN,
                            "  none that uses CUDA and that this user may look at");
    }
    return line;
}

void spw_cli_list_json(cJSON *object, const struct spw_cli_running *running)
{
    cJSON *list = cJSON_AddArrayToObject(object, "processes");

    for (int i = 0; i < running->count; i++) {
        cJSON *process = cJSON_CreateObject();

        spw_cli_process_json(process, running->list[i], NULL);
        cJSON_AddItemToArray(list, process);
    }
}
