#include "cli/recording/events.h"

#include <stdio.h>
#include <string.h>

/* ---- numbers ---- */

/* Reads a number. Returns false if the block ends before the number ends. */
static bool take(struct spw_cli_events *events, uint64_t *ret_number)
{
    uint64_t number = 0;

    for (unsigned shift = 0; shift < 64 && events->at < events->block_end; shift += 7) {
        uint8_t byte = *events->at++;

        number |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            *ret_number = number;
            return true;
        }
    }
    return false;
}

static bool take_signed(struct spw_cli_events *events, uint64_t *number)
{
    uint64_t difference;

    if (!take(events, &difference)) {
        return false;
    }
    *number += difference >> 1 ^ -(difference & 1);
    return true;
}

static bool take_text(struct spw_cli_events *events, struct spw_cli_text *ret_text)
{
    uint64_t length;

    if (!take(events, &length) || length > SPW_RECORD_TEXT ||
        length > (uint64_t)(events->block_end - events->at)) {
        return false;
    }
    *ret_text = (struct spw_cli_text){(const char *)events->at, (size_t)length};
    events->at += length;
    return true;
}

/* Reads an address without its lowest byte. take_low adds this byte. */
static bool take_address(struct spw_cli_events *events, uint64_t *ret_address)
{
    if (!take_signed(events, &events->address)) {
        return false;
    }
    events->address &= UINT64_MAX >> 8;
    *ret_address = events->address << 8;
    return true;
}

static bool take_low(struct spw_cli_events *events, uint64_t *address)
{
    uint64_t low;

    if (!take(events, &low) || low > 0xff) {
        return false;
    }
    *address |= low;
    return true;
}

/* ---- bodies ---- */

static bool take_alloc(struct spw_cli_events *events, struct spw_cli_event *event)
{
    uint64_t flags = 0;
    bool on_host;

    if (!take_address(events, &event->address) || !take(events, &event->bytes) ||
        !take(events, &event->number)) {
        return false;
    }
    if (event->more && (!take(events, &flags) || !take_low(events, &event->address))) {
        return false;
    }
    event->source = (enum spw_record_source)(flags & SPW_RECORD_SOURCE);
    event->charged = (flags & SPW_RECORD_CHARGED) != 0;
    event->rule = (unsigned)(flags >> SPW_RECORD_RULE_SHIFT & 0xffff);
    on_host = (flags & SPW_RECORD_ON_HOST) != 0;
    event->host_bytes = on_host ? event->bytes : 0;
    if (on_host && events->blocks.header.version > 1 && !take(events, &event->host_bytes)) {
        return false;
    }
    return event->host_bytes <= event->bytes;
}

static bool take_free(struct spw_cli_events *events, struct spw_cli_event *event)
{
    return take_address(events, &event->address) &&
           (!event->more || take_low(events, &event->address));
}

static bool take_frames(struct spw_cli_events *events, struct spw_cli_event *event)
{
    uint64_t count, address = 0;

    if (!take(events, &count) || count > SPW_CALLSITE_NATIVE) {
        return false;
    }
    event->native_count = (unsigned)count;
    for (unsigned i = 0; i < event->native_count; i++) {
        if (!take_signed(events, &address)) {
            return false;
        }
        event->native[i] = address;
    }
    if (!take(events, &count) || count > SPW_CALLSITE_PYTHON) {
        return false;
    }
    event->python_count = (unsigned)count;
    for (unsigned i = 0; i < event->python_count; i++) {
        uint64_t file, function, line;

        if (!take(events, &file) || !take(events, &function) || !take(events, &line) ||
            file > UINT32_MAX || function > UINT32_MAX || line > UINT32_MAX) {
            return false;
        }
        event->python[i] =
            (struct spw_callsite_line){(uint32_t)file, (uint32_t)function, (uint32_t)line};
    }
    return true;
}

static bool take_site(struct spw_cli_events *events, struct spw_cli_event *event)
{
    uint64_t cut;

    if (!take(events, &event->number) || !take_text(events, &event->text) ||
        !take(events, &event->role) || !take(events, &cut)) {
        return false;
    }
    event->cut = cut != 0;
    event->modules = 0;
    return take_frames(events, event) && (!event->more || take(events, &event->modules));
}

static bool take_module(struct spw_cli_events *events, struct spw_cli_event *event)
{
    return take(events, &event->number) && take(events, &event->base) &&
           take(events, &event->begin) && take(events, &event->end) &&
           take(events, &event->dynamic) && take_text(events, &event->id) &&
           take_text(events, &event->text);
}

static bool take_gauges(struct spw_cli_events *events, struct spw_cli_event *event)
{
    uint64_t *gauges = events->gauges[event->device];
    uint64_t mask, unknown;

    if (!take(events, &mask)) {
        return false;
    }
    for (unsigned bit = 0; bit < 64; bit++) {
        bool known = bit < SPW_RECORD_GAUGE_COUNT;

        if ((mask >> bit & 1) != 0 && !take_signed(events, known ? &gauges[bit] : &unknown)) {
            return false;
        }
    }
    memcpy(event->gauges, gauges, sizeof(event->gauges));
    return true;
}

static bool take_oom(struct spw_cli_events *events, struct spw_cli_event *event)
{
    return take(events, &event->bytes) && take(events, &event->missing) &&
           take(events, &event->number) && take(events, &event->live) &&
           take(events, &event->committed) && take(events, &event->limit);
}

static bool take_name(struct spw_cli_events *events, struct spw_cli_event *event)
{
    uint64_t named;

    if (!take(events, &named) || !take(events, &event->number) ||
        !take_text(events, &event->text)) {
        return false;
    }
    event->named =
        named < SPW_RECORD_NAMED_KINDS ? (enum spw_record_named)named : SPW_RECORD_NAMED_KINDS;
    return true;
}

static bool take_use(struct spw_cli_events *events, struct spw_cli_event *event)
{
    uint64_t count;

    if (!take(events, &count) || count > SPW_RECORD_USED) {
        return false;
    }
    event->used_count = (unsigned)count;
    for (unsigned i = 0; i < event->used_count; i++) {
        if (!take_address(events, &event->used[i])) {
            return false;
        }
    }
    return true;
}

static bool take_body(struct spw_cli_events *events, struct spw_cli_event *event)
{
    uint64_t units;

    switch (event->kind) {
    case SPW_RECORD_ALLOC:
        return take_alloc(events, event);
    case SPW_RECORD_FREE:
        return take_free(events, event);
    case SPW_RECORD_TEXT_:
        return take(events, &event->number) && take_text(events, &event->text);
    case SPW_RECORD_SITE:
        return take_site(events, event);
    case SPW_RECORD_MODULE:
        return take_module(events, event);
    case SPW_RECORD_STEP:
        return take(events, &event->number);
    case SPW_RECORD_GAUGES:
        return take_gauges(events, event);
    case SPW_RECORD_MOVE:
        return take(events, &event->to_host) && take(events, &event->to_device) &&
               take(events, &event->ns);
    case SPW_RECORD_RANGE:
        if (!take_address(events, &event->address) || !take(events, &units)) {
            return false;
        }
        event->bytes = units << 8;
        return true;
    case SPW_RECORD_OOM:
        return take_oom(events, event);
    case SPW_RECORD_NAME:
        return take_name(events, event);
    case SPW_RECORD_CALL:
        return take(events, &event->number) && take(events, &event->ns);
    case SPW_RECORD_USE:
        return take_use(events, event);
    default:
        return false;
    }
}

/* ---- events ---- */

static bool take_head(struct spw_cli_events *events, struct spw_cli_event *event)
{
    uint8_t head = *events->at++;
    uint64_t passed, device = (uint64_t)events->device, thread = events->thread;

    if (!take(events, &passed) || ((head & SPW_RECORD_HAS_DEVICE) != 0 && !take(events, &device)) ||
        ((head & SPW_RECORD_HAS_STREAM) != 0 && !take(events, &events->stream)) ||
        ((head & SPW_RECORD_HAS_THREAD) != 0 && !take(events, &thread)) ||
        device >= SPW_DEVICES_MAX || thread > UINT32_MAX) {
        return false;
    }
    events->time += passed < UINT64_MAX / 2 - events->time ? passed : 0;
    events->device = (int)device;
    events->thread = (uint32_t)thread;
    event->kind = (enum spw_record_kind)(head & SPW_RECORD_KIND);
    event->more = (head & SPW_RECORD_HAS_MORE) != 0;
    event->time = events->time;
    event->device = events->device;
    event->stream = events->stream;
    event->thread = events->thread;
    return true;
}

static bool next_block(struct spw_cli_events *events)
{
    if (!spw_cli_blocks_next(&events->blocks)) {
        return false;
    }
    events->at = events->blocks.content;
    events->block_end = events->at + events->blocks.content_bytes;
    /* Time never goes back, even in a damaged file. */
    if (events->blocks.time > events->time && events->blocks.time < UINT64_MAX / 2) {
        events->time = events->blocks.time;
    }
    events->device = 0;
    events->stream = events->address = 0;
    events->thread = 0;
    memset(events->gauges, 0, sizeof(events->gauges));
    return true;
}

bool spw_cli_events_open(struct spw_cli_events *events, int fd)
{
    memset(events, 0, sizeof(*events));
    return spw_cli_blocks_open(&events->blocks, fd);
}

void spw_cli_events_close(struct spw_cli_events *events)
{
    spw_cli_blocks_close(&events->blocks);
}

bool spw_cli_events_next(struct spw_cli_events *events, struct spw_cli_event *ret_event)
{
    while (events->at == events->block_end) {
        if (!next_block(events)) {
            return false;
        }
    }
    if (!take_head(events, ret_event) || !take_body(events, ret_event)) {
        snprintf(events->blocks.problem, sizeof(events->blocks.problem),
                 "block %u: an event is damaged", (unsigned)events->blocks.sequence - 1);
        events->at = events->block_end;
        return false;
    }
    return true;
}

void spw_cli_events_rewind(struct spw_cli_events *events)
{
    spw_cli_blocks_rewind(&events->blocks);
    events->at = events->block_end = NULL;
    events->time = 0;
}
