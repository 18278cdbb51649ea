/* The state of the recording in this process. All zero bytes is the state before the start.
 *
 * Guarded by spw_locks.record; atomic members may be changed without it. It lives as long as the
 * process: spw_record_start resets it for a new recording, in a child after fork. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "callsite/shm.h"
#include "common/counters.h"
#include "record/file.h"
#include "record/format.h"
#include "record/timeline.h"

/* The arguments of a recording. */
struct spw_record_start {
    const char *path; /* a pattern: %p, %r, %h */
    uint64_t limit;   /* most bytes of the file; with `permille`, share of the free space */
    bool permille;
    uint64_t start_ticks; /* of the process, in clock ticks since boot */
    int64_t rank;
    int devices;
    bool uses;                                    /* record which blocks calls use */
    struct spw_counters *(*counters)(int device); /* of each device */
    const char *(*call_name)(int call);           /* of a driver call; NULL behind the last one */
    const char *(*rule_name)(int rule);           /* of a rule, from 0; NULL behind the last one */
    const char *about[5]; /* SPW_RECORD_NAMED_ABOUT, without the host; NULL: not known */
};

/* The last values of the block. The next event is stored relative to them. */
struct spw_record_context {
    int device;
    uint64_t stream;
    uint32_t thread;
    uint64_t address; /* in units of 256 bytes */
    uint64_t gauges[SPW_DEVICES_MAX][SPW_RECORD_GAUGE_COUNT];
};

/* The events on their way into the file. */
struct spw_record_writer {
    uint8_t *at, *end; /* in the block that is written; NULL when the file is full */
    uint64_t time;     /* of the last event, in units */
    struct spw_record_timeline timeline;
    bool ticks; /* true: the processor's clock is used; false: the system's */
    struct spw_record_context last;
    struct spw_record_header *header;
    struct spw_record_block *block;
    size_t offset; /* of the block in the file */
    uint32_t sequence;
    struct spw_record_file file;
};

/* The marks and steps of the program, which may make any number of them. */
struct spw_record_marks {
    uint64_t bytes;     /* bytes of marks and steps, with the ends of open marks */
    uint64_t open;      /* marks that began; their ends have a place */
    uint64_t lost_open; /* marks whose beginning was lost */
};

enum { SPW_RECORD_TEXTS = 16 << 20 }; /* numbers of texts are below this (callsite/capture.c) */

/* The parts of call sites that are in the file. */
struct spw_record_known {
    uint8_t sites[SPW_CALLSITE_MOST + 1];
    uint8_t texts[SPW_RECORD_TEXTS / 4 / 8]; /* bits; numbers are multiples of 4 */
    size_t modules;
};

/* Driver calls of spillway's own on one device. */
struct spw_record_own {
    _Atomic uint64_t driver_calls, driver_ns;
};

struct spw_record {
    /* Every call reads these, and only the start and the end of a recording change them. */
    _Atomic bool events; /* events are recorded */
    _Atomic bool uses;   /* the blocks that calls use are also recorded */
    _Alignas(64) struct spw_record_writer writer;
    uint32_t number;  /* of the recording in this process, from 1 */
    uint32_t threads; /* number of threads seen */
    uint32_t steps;
    struct spw_record_marks marks;
    struct spw_counters *counters[SPW_DEVICES_MAX];
    bool at_exit; /* the exit handler is registered */
    /* The arguments for a file that is to be made; no path: none is to be made. */
    struct spw_record_start due;
    char due_path[SPW_RECORD_PATH];
    struct spw_record_known known;
    _Alignas(64) struct spw_record_own own[SPW_DEVICES_MAX]; /* changed without the lock */
};

extern struct spw_record spw_record;
