/* Writes a snapshot for PyTorch's memory_viz (pytorch.org/memory_viz). The snapshot has the
 * segments with the blocks that are live at the end of the recording, and the trace of each device.
 *
 * The viewer requires that blocks fill their segment without gaps, and that the texts of frames are
 * not null. It accepts the free of an address only if the trace contains the allocation. Therefore
 * frees of earlier allocations are omitted. A pickle contains each list of frames once. JSON
 * repeats the list. */
#include "cli/report/report.h"

#include "cli/report/snapshot.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { GRANULE = 2 << 20, GAP_MOST = 8 * GRANULE };

struct viz {
    struct spw_cli_snapshot snapshot;
    uint32_t *kept; /* by site: its frames in the pickle; 0: not written yet */
    int device;
    enum spw_cli_shown shown;
    uint64_t first_event; /* the trace begins here */
};

static void put_number(struct viz *viz, const char *key, uint64_t number)
{
    spw_cli_snapshot_key(&viz->snapshot, key);
    spw_cli_snapshot_number(&viz->snapshot, number);
}

static void put_text(struct viz *viz, const char *key, const char *text)
{
    spw_cli_snapshot_key(&viz->snapshot, key);
    spw_cli_snapshot_text(&viz->snapshot, text);
}

static void open_dictionary(struct viz *viz)
{
    spw_cli_snapshot_open(&viz->snapshot, /* dictionary */ true);
}

static void open_list(struct viz *viz, const char *key)
{
    spw_cli_snapshot_key(&viz->snapshot, key);
    spw_cli_snapshot_open(&viz->snapshot, /* dictionary */ false);
}

static void put_frames(struct viz *viz, uint32_t site)
{
    static struct spw_cli_frame frames[SPW_CLI_FRAMES];
    unsigned count;

    if (viz->kept[site] != 0) {
        spw_cli_snapshot_key(&viz->snapshot, "frames");
        spw_cli_snapshot_again(&viz->snapshot, viz->kept[site]);
        return;
    }
    count = spw_cli_recorded_sites_frames(site, viz->shown, frames);
    open_list(viz, "frames");
    for (unsigned i = 0; i < count; i++) {
        open_dictionary(viz);
        put_text(viz, "name", frames[i].name);
        put_text(viz, "filename", frames[i].file);
        put_number(viz, "line", frames[i].line);
        spw_cli_snapshot_close(&viz->snapshot);
    }
    viz->kept[site] = spw_cli_snapshot_close_kept(&viz->snapshot);
}

/* ---- segments ---- */

static int compare_blocks(const void *left, const void *right)
{
    const struct spw_cli_block *a = *(struct spw_cli_block *const *)left;
    const struct spw_cli_block *b = *(struct spw_cli_block *const *)right;

    if (a->device != b->device) {
        return a->device < b->device ? -1 : 1;
    }
    return a->address < b->address ? -1 : a->address > b->address;
}

static bool is_shown(const struct spw_cli_block *block)
{
    return block->source != SPW_RECORD_PINNED && block->bytes > 0 && block->bytes < INT64_MAX / 2;
}

static uint64_t size_of(const struct spw_cli_block *block)
{
    return block->counted > 0 ? block->counted : block->bytes;
}

/* Returns the shown live blocks, sorted by address. The caller frees the list. Returns NULL if
 * memory runs out. */
static struct spw_cli_block **blocks_of(const struct spw_cli_state *state, size_t *ret_count)
{
    struct spw_cli_block **blocks = calloc(state->live.count + 1, sizeof(*blocks));
    struct spw_cli_block *block;
    size_t cursor = 0, count = 0;

    while (blocks != NULL && (block = spw_map_next(&state->live, &cursor)) != NULL) {
        if (is_shown(block)) {
            blocks[count++] = block;
        }
    }
    if (blocks != NULL) {
        qsort(blocks, count, sizeof(*blocks), compare_blocks);
    }
    *ret_count = count;
    return blocks;
}

/* The number of blocks at the head of the list that share one segment. */
static size_t run_of(struct spw_cli_block *const *blocks, size_t count)
{
    size_t run = 1;

    while (run < count && blocks[0]->source == SPW_RECORD_POOL && blocks[0]->host_bytes == 0 &&
           blocks[run]->source == SPW_RECORD_POOL && blocks[run]->host_bytes == 0 &&
           blocks[run]->device == blocks[0]->device) {
        uint64_t end = blocks[run - 1]->address + size_of(blocks[run - 1]);

        if (blocks[run]->address < end || blocks[run]->address - end > GAP_MOST) {
            break;
        }
        run++;
    }
    return run;
}

static void put_block(struct viz *viz, const struct spw_cli_block *block, uint64_t address,
                      uint64_t bytes)
{
    open_dictionary(viz);
    put_number(viz, "address", address);
    put_number(viz, "size", bytes);
    put_number(viz, "requested_size", block != NULL ? block->bytes : 0);
    put_text(viz, "state", block != NULL ? "active_allocated" : "inactive");
    put_frames(viz, block != NULL ? block->site : 0);
    spw_cli_snapshot_close(&viz->snapshot);
}

static void put_segment(struct viz *viz, struct spw_cli_block *const *blocks, size_t count)
{
    uint64_t begin = blocks[0]->address, at = begin, active = 0, requested = 0;
    uint64_t end = blocks[count - 1]->address + size_of(blocks[count - 1]);

    for (size_t i = 0; i < count; i++) {
        active += size_of(blocks[i]);
        requested += blocks[i]->bytes;
    }
    open_dictionary(viz);
    put_number(viz, "device", (uint64_t)blocks[0]->device);
    put_number(viz, "address", begin);
    put_number(viz, "total_size", end - begin);
    put_number(viz, "allocated_size", active);
    put_number(viz, "active_size", active);
    put_number(viz, "requested_size", requested);
    put_number(viz, "stream", blocks[0]->stream);
    put_text(viz, "segment_type", end - begin > GRANULE ? "large" : "small");
    spw_cli_snapshot_key(&viz->snapshot, "segment_pool_id");
    spw_cli_snapshot_pair(&viz->snapshot, blocks[0]->host_bytes > 0, 0);
    spw_cli_snapshot_key(&viz->snapshot, "is_expandable");
    spw_cli_snapshot_boolean(&viz->snapshot, false);
    put_frames(viz, blocks[0]->site);
    open_list(viz, "blocks");
    for (size_t i = 0; i < count; i++) {
        if (blocks[i]->address > at) {
            put_block(viz, NULL, at, blocks[i]->address - at);
        }
        put_block(viz, blocks[i], blocks[i]->address, size_of(blocks[i]));
        at = blocks[i]->address + size_of(blocks[i]);
    }
    spw_cli_snapshot_close(&viz->snapshot);
    spw_cli_snapshot_close(&viz->snapshot);
}

static void put_segments(struct spw_cli_report *report, struct viz *viz)
{
    size_t count, run;
    struct spw_cli_block **blocks = blocks_of(&report->state, &count);

    open_list(viz, "segments");
    for (size_t i = 0; blocks != NULL && i < count; i += run) {
        run = run_of(blocks + i, count - i);
        put_segment(viz, blocks + i, run);
    }
    spw_cli_snapshot_close(&viz->snapshot);
    free(blocks);
}

/* ---- traces ---- */

static void put_entry(struct spw_cli_report *report, struct viz *viz, const char *action,
                      const struct spw_cli_block *block, uint64_t time)
{
    char about[64];

    open_dictionary(viz);
    put_text(viz, "action", action);
    put_number(viz, "addr", block->address);
    put_number(viz, "size", size_of(block));
    put_number(viz, "stream", block->stream);
    put_number(viz, "time_us", spw_cli_report_us(report, time));
    put_frames(viz, block->site);
    if (block->host_bytes > 0 || block->rule != 0) {
        snprintf(about, sizeof(about), "tier=%s rule=%u", block->host_bytes > 0 ? "host" : "device",
                 block->rule);
        put_text(viz, "user_metadata", about);
    }
    spw_cli_snapshot_close(&viz->snapshot);
}

static void put_oom(struct spw_cli_report *report, struct viz *viz,
                    const struct spw_cli_event *event)
{
    open_dictionary(viz);
    put_text(viz, "action", "oom");
    put_number(viz, "device_free", event->limit > event->live ? event->limit - event->live : 0);
    put_number(viz, "size", event->bytes);
    put_number(viz, "stream", event->stream);
    put_number(viz, "time_us", spw_cli_report_us(report, event->time));
    put_frames(viz, spw_cli_recorded_sites_number(report->state.sites, event->number));
    spw_cli_snapshot_close(&viz->snapshot);
}

static void take(struct spw_cli_report *report, const struct spw_cli_event *event,
                 const struct spw_cli_block *freed, void *context)
{
    struct viz *viz = context;
    const struct spw_cli_block *block;

    if (event->device != viz->device || report->state.events < viz->first_event) {
        return;
    }
    if (freed != NULL && freed->event >= viz->first_event && is_shown(freed)) {
        put_entry(report, viz, "free_requested", freed, event->time);
        put_entry(report, viz, "free_completed", freed, event->time);
    }
    if (event->kind == SPW_RECORD_ALLOC) {
        block = spw_cli_state_block(&report->state, event->device, event->address);
        if (block != NULL && is_shown(block)) {
            put_entry(report, viz, "alloc", block, event->time);
        }
    } else if (event->kind == SPW_RECORD_OOM) {
        put_oom(report, viz, event);
    }
}

/* The search for the first event of a device's trace, which has only the device's latest
 * allocations and frees. */
struct search {
    int device;
    uint64_t skip; /* allocations and frees of the device before the trace */
    uint64_t found;
};

static void skip(struct spw_cli_report *report, const struct spw_cli_event *event,
                 const struct spw_cli_block *freed, void *context)
{
    struct search *search = context;

    (void)freed;
    if (event->device == search->device && search->skip > 0 &&
        (event->kind == SPW_RECORD_ALLOC || event->kind == SPW_RECORD_FREE)) {
        search->skip--;
        search->found = report->state.events + 1;
    }
}

static void put_traces(struct spw_cli_report *report, struct viz *viz, int devices,
                       bool *ret_overflowed)
{
    *ret_overflowed = false;
    open_list(viz, "device_traces");
    for (int i = 0; i < devices; i++) {
        const struct spw_cli_device *device = &report->state.devices[i];
        uint64_t all = device->allocs + device->frees;
        struct search search = {.device = i};

        if (all > report->most_events) {
            search.skip = all - report->most_events;
            spw_cli_report_each(report, skip, &search);
            *ret_overflowed = true;
        }
        viz->device = i;
        viz->first_event = search.found;
        spw_cli_snapshot_open(&viz->snapshot, /* dictionary */ false);
        spw_cli_report_each(report, take, viz);
        spw_cli_snapshot_close(&viz->snapshot);
    }
    spw_cli_snapshot_close(&viz->snapshot);
}

static void put_annotation(struct spw_cli_report *report, struct viz *viz,
                           const struct spw_cli_event *event, const char *stage, uint64_t time)
{
    char name[80];

    snprintf(name, sizeof(name), "move: %" PRIu64 " MiB to host, %" PRIu64 " MiB back",
             event->to_host >> 20, event->to_device >> 20);
    open_dictionary(viz);
    put_number(viz, "device", (uint64_t)event->device);
    put_number(viz, "time_us", spw_cli_report_us(report, time));
    put_text(viz, "stage", stage);
    put_text(viz, "name", name);
    spw_cli_snapshot_close(&viz->snapshot);
}

static void annotate(struct spw_cli_report *report, const struct spw_cli_event *event,
                     const struct spw_cli_block *freed, void *context)
{
    uint64_t units = event->ns / SPW_RECORD_UNIT_NS;

    (void)freed;
    if (event->kind == SPW_RECORD_MOVE) {
        put_annotation(report, context, event, "START",
                       units < event->time ? event->time - units : 0);
        put_annotation(report, context, event, "END", event->time);
    }
}

static void put_viz(struct spw_cli_report *report, bool pickle)
{
    int devices = spw_cli_state_devices(&report->state);
    bool overflowed;
    struct viz viz = {
        .snapshot = {.out = &report->out, .pickle = pickle},
        .kept = calloc(spw_cli_recorded_sites_count(report->state.sites) + 1, sizeof(*viz.kept)),
        .shown = report->shown,
    };

    if (viz.kept == NULL) {
        return;
    }
    spw_cli_snapshot_begin(&viz.snapshot);
    open_dictionary(&viz);
    put_segments(report, &viz);
    put_traces(report, &viz, devices, &overflowed);
    open_list(&viz, "external_annotations");
    spw_cli_report_each(report, annotate, &viz);
    spw_cli_snapshot_close(&viz.snapshot);
    spw_cli_snapshot_key(&viz.snapshot, "allocator_settings");
    open_dictionary(&viz);
    put_text(&viz, "recorder", "spillway");
    spw_cli_snapshot_key(&viz.snapshot, "trace_alloc_overflowed");
    spw_cli_snapshot_boolean(&viz.snapshot, overflowed);
    put_number(&viz, "trace_alloc_max_entries", report->most_events);
    spw_cli_snapshot_close(&viz.snapshot);
    spw_cli_snapshot_close(&viz.snapshot);
    spw_cli_snapshot_end(&viz.snapshot);
    free(viz.kept);
}

void spw_cli_report_viz(struct spw_cli_report *report)
{
    put_viz(report, /* pickle */ true);
}

void spw_cli_report_viz_json(struct spw_cli_report *report)
{
    put_viz(report, /* pickle */ false);
}
