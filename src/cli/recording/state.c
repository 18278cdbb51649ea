#include "cli/recording/state.h"

#include "common/grow.h"
#include "common/minmax.h"
#include "common/utf8.h"

#include <stdlib.h>
#include <string.h>

enum { UNIT = 512, FIRST_SITES = 256, DEVICE_SHIFT = 57 };

bool spw_cli_state_init(struct spw_cli_state *state)
{
    memset(state, 0, sizeof(*state));
    state->sites = spw_cli_recorded_sites_create();
    return state->sites != NULL;
}

void spw_cli_state_fini(struct spw_cli_state *state)
{
    if (state->sites != NULL) {
        spw_cli_recorded_sites_free(state->sites);
    }
    spw_map_clear(&state->live);
    free(state->live.slots);
    for (int i = 0; i < SPW_DEVICES_MAX; i++) {
        free(state->devices[i].held);
    }
    memset(state, 0, sizeof(*state));
}

/* ---- blocks ---- */

/* Returns the key of an address on a device. The key is unique, because all addresses are below 2
 * to the power of 57. */
static uint64_t key_of(int device, uint64_t address)
{
    return address ^ (uint64_t)device << DEVICE_SHIFT;
}

struct spw_cli_block *spw_cli_state_block(const struct spw_cli_state *state, int device,
                                          uint64_t address)
{
    return spw_map_get(&state->live, key_of(device, address));
}

static struct spw_cli_held *held_of(struct spw_cli_device *device, uint32_t site)
{
    if (site >= device->held_count) {
        uint32_t count = site < FIRST_SITES ? FIRST_SITES : site * 2;

        if (!SPW_RESIZE(&device->held, count)) {
            return NULL;
        }
        memset(device->held + device->held_count, 0,
               (count - device->held_count) * sizeof(*device->held));
        device->held_count = count;
    }
    return &device->held[site];
}

/* Called before `live` changes: saves the bytes that the site held at the latest peak. */
static void keep_peak(const struct spw_cli_device *device, struct spw_cli_held *held)
{
    if (held->epoch != device->epoch) {
        held->at_peak = held->live;
        held->epoch = device->epoch;
    }
}

uint64_t spw_cli_state_at_peak(const struct spw_cli_device *device, uint32_t site)
{
    const struct spw_cli_held *held;

    if (site >= device->held_count) {
        return 0;
    }
    held = &device->held[site];
    return held->epoch == device->epoch ? held->at_peak : held->live;
}

static void end_block(struct spw_cli_state *state, const struct spw_cli_block *block)
{
    struct spw_cli_device *device = &state->devices[block->device];
    struct spw_cli_held *held = held_of(device, block->site);

    if (held != NULL) {
        keep_peak(device, held);
        held->live -= block->counted;
        held->frees++;
    }
    device->live -= block->counted;
    device->frees++;
    device->pool_frees += block->source == SPW_RECORD_POOL;
}

static void begin_block(struct spw_cli_state *state, const struct spw_cli_block *block)
{
    struct spw_cli_device *device = &state->devices[block->device];
    struct spw_cli_held *held = held_of(device, block->site);

    if (held == NULL) {
        state->out_of_memory = true;
        return;
    }
    keep_peak(device, held);
    held->live += block->counted;
    held->total += block->counted;
    held->allocs++;
    held->peak = held->live > held->peak ? held->live : held->peak;
    device->live += block->counted;
    device->allocs++;
    device->pool_allocs += block->source == SPW_RECORD_POOL;
    if (device->live > device->live_peak) {
        device->live_peak = device->live;
        device->peak_time = block->time;
        device->peak_event = state->events;
        device->epoch++;
    }
}

static void take_alloc(struct spw_cli_state *state, const struct spw_cli_event *event,
                       struct spw_cli_block *ret_freed, bool *ret_is_freed)
{
    uint64_t key = key_of(event->device, event->address);
    struct spw_cli_block *block = spw_map_get(&state->live, key);
    bool counts = event->source == SPW_RECORD_POOL || event->charged;

    if (block != NULL) { /* its free is not in the recording */
        end_block(state, block);
        *ret_freed = *block;
        *ret_is_freed = true;
    } else {
        block = malloc(sizeof(*block));
        if (block == NULL || !spw_map_put(&state->live, key, block)) {
            free(block);
            state->out_of_memory = true;
            return;
        }
    }
    *block = (struct spw_cli_block){
        .address = event->address,
        .bytes = event->bytes,
        .counted =
            counts && event->bytes <= UINT64_MAX / 2 ? (event->bytes + UNIT - 1) / UNIT * UNIT : 0,
        .time = event->time,
        .event = state->events,
        .stream = event->stream,
        .site = spw_cli_recorded_sites_number(state->sites, event->number),
        .thread = event->thread,
        .device = event->device,
        .source = event->source,
        .host_bytes = event->host_bytes,
        .rule = event->rule,
    };
    begin_block(state, block);
}

static void take_free(struct spw_cli_state *state, const struct spw_cli_event *event,
                      struct spw_cli_block *ret_freed, bool *ret_is_freed)
{
    struct spw_cli_block *block = spw_map_take(&state->live, key_of(event->device, event->address));

    if (block == NULL) {
        state->unknown_frees++;
        return;
    }
    end_block(state, block);
    *ret_freed = *block;
    *ret_is_freed = true;
    free(block);
}

/* ---- the rest ---- */

static void take_gauges(struct spw_cli_device *device, const struct spw_cli_event *event)
{
    memcpy(device->gauges, event->gauges, sizeof(device->gauges));
    device->committed_peak =
        spw_max(device->committed_peak, event->gauges[SPW_RECORD_GAUGE_committed_bytes]);
    device->host_peak = spw_max(device->host_peak, event->gauges[SPW_RECORD_GAUGE_host_bytes]);
}

static void take_name(struct spw_cli_state *state, const struct spw_cli_event *event)
{
    if (event->named == SPW_RECORD_NAMED_ABOUT && event->number < SPW_RECORD_ABOUT_COUNT) {
        char *about = state->about[event->number];

        memcpy(about, event->text.bytes, event->text.length);
        about[event->text.length] = '\0';
        spw_utf8_plain(about, /* keep */ "");
    }
}

static void take_mark(struct spw_cli_state *state, const struct spw_cli_event *event)
{
    uint64_t live[SPW_DEVICES_MAX];

    for (int i = 0; i < SPW_DEVICES_MAX; i++) {
        live[i] = state->devices[i].live;
    }
    spw_cli_marks_take(&state->marks, event, live);
}

void spw_cli_state_take(struct spw_cli_state *state, const struct spw_cli_event *event,
                        struct spw_cli_block *ret_freed, bool *ret_is_freed)
{
    struct spw_cli_device *device = &state->devices[event->device];

    state->events++;
    state->time = event->time;
    *ret_is_freed = false;
    switch (event->kind) {
    case SPW_RECORD_ALLOC:
        take_alloc(state, event, ret_freed, ret_is_freed);
        spw_cli_marks_rise(&state->marks, event->device, device->live);
        break;
    case SPW_RECORD_FREE:
        take_free(state, event, ret_freed, ret_is_freed);
        break;
    case SPW_RECORD_GAUGES:
        take_gauges(device, event);
        break;
    case SPW_RECORD_MOVE:
        device->moves++;
        device->to_host += event->to_host;
        device->to_device += event->to_device;
        device->held_back_ns += event->ns;
        break;
    case SPW_RECORD_OOM:
        if (device->ooms++ == 0) {
            device->first_oom = *event;
        }
        break;
    case SPW_RECORD_STEP:
        state->steps++;
        break;
    case SPW_RECORD_NAME:
        if (event->named == SPW_RECORD_NAMED_MARK) {
            take_mark(state, event);
        } else if (event->named == SPW_RECORD_NAMED_TAG) {
            if (!state->again) {
                spw_cli_recorded_sites_take(state->sites, event);
            }
        } else {
            take_name(state, event);
        }
        break;
    default:
        if (!state->again) {
            spw_cli_recorded_sites_take(state->sites, event);
        }
    }
}

void spw_cli_state_restart(struct spw_cli_state *state)
{
    struct spw_cli_recorded_sites *sites = state->sites;

    state->sites = NULL;
    spw_cli_state_fini(state);
    state->sites = sites;
    state->again = true;
}

int spw_cli_state_devices(const struct spw_cli_state *state)
{
    int count = 0;

    for (int i = 0; i < SPW_DEVICES_MAX; i++) {
        if (state->devices[i].held != NULL) {
            count = i + 1;
        }
    }
    return count;
}
