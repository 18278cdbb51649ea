/* Reads recordings, and derives facts from their events. It does not know how a program is started.
 *
 *   blocks     reads the blocks of a recording in bounded memory
 *   category   the purpose of a PyTorch program's memory, and the ends of its steps
 *   compress   compresses a finished recording
 *   events     reads the events one after the other, decoded and checked
 *   forward    the line of the forward pass for a node of the backward pass
 *   marks      time and peak memory of the parts that a program marks
 *   roles      the role of an allocation, by PyTorch's functions on its stack
 *   sites      collects the call sites of a recording, and describes them
 *   state      live blocks, sums and peaks, from the events so far
 *   wrappers   Python functions that only call the function that they wrap
 *   zstd       compression by libzstd, which is loaded when needed
 *
 * One thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "callsite/table.h"
#include "cli/recording/blocks.h"

/* A text in the file. It may contain any bytes and is not zero-terminated. It is valid until the
 * next event is read. */
struct spw_cli_text {
    const char *bytes;
    size_t length;
};

/* An event. The event's kind determines which members are set (record/format.h). */
struct spw_cli_event {
    enum spw_record_kind kind;
    uint64_t time; /* in units since the recording began */
    int device;    /* less than SPW_DEVICES_MAX */
    uint64_t stream;
    uint32_t thread;
    bool more; /* MOVE: predicted; RANGE: to the host; USE: by a kernel; SITE: has modules */
    uint64_t address, bytes;
    uint64_t number; /* of the site, text, module, step, name or call */
    enum spw_record_source source;
    bool charged;
    uint64_t host_bytes; /* ALLOC: bytes on the host; in version 1 either all bytes or 0 */
    unsigned rule;
    uint64_t ns;
    uint64_t to_host, to_device;
    uint64_t missing, live, committed, limit;
    enum spw_record_named named;
    struct spw_cli_text text, /* TEXT_, NAME; MODULE: path; SITE: the function called */
        id;                   /* MODULE: build ID */
    uint64_t base, begin, end, dynamic;
    uint64_t role, modules; /* SITE: texts with the thread name and the module classes */
    bool cut;
    unsigned native_count, python_count;
    uint64_t native[SPW_CALLSITE_NATIVE];
    struct spw_callsite_line python[SPW_CALLSITE_PYTHON];
    uint64_t gauges[SPW_RECORD_GAUGE_COUNT]; /* all gauges of the device */
    unsigned used_count;                     /* USE: the addresses, rounded down to 256 bytes */
    uint64_t used[SPW_RECORD_USED];
};

struct spw_cli_events {
    struct spw_cli_blocks blocks;
    const uint8_t *at, *block_end;
    uint64_t time;
    int device;
    uint64_t stream, address;
    uint32_t thread;
    uint64_t gauges[SPW_DEVICES_MAX][SPW_RECORD_GAUGE_COUNT];
};

/* Opens a recording. Takes ownership of the descriptor, even on failure. If the file is not a
 * recording, writes a sentence to events->blocks.problem and returns false. */
bool spw_cli_events_open(struct spw_cli_events *events, int fd);
void spw_cli_events_close(struct spw_cli_events *events);

/* _next reads the next event. It returns false at the end of the recording and where the recording
 * is damaged. At the end, events->blocks.problem is "". Otherwise it describes the damage. _rewind
 * goes back to the first event. */
bool spw_cli_events_next(struct spw_cli_events *events, struct spw_cli_event *ret_event);
void spw_cli_events_rewind(struct spw_cli_events *events);
