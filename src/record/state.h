/* The state of the recording in this process. All zero bytes is the state before the start.
 *
 * Guarded by spw_locks.record. Atomic members may be used without the lock. The state lives as long
 * as the process. In a child after fork, spw_record_start resets it for a new recording. */
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
    const char *path; /* a pattern, with %p, %r and %h */
    uint64_t limit;   /* largest size of the file, in bytes or, with `permille`, as a share of the
                         free space */
    bool permille;
    uint64_t start_ticks; /* start of the process, in clock ticks since boot */
    int64_t rank;
    int devices;
    bool uses;                                    /* also record which blocks calls use */
    struct spw_counters *(*counters)(int device); /* returns the counters of a device */
    const char *(*call_name)(int call);           /* returns the name of a driver call; NULL behind
                                                     the last one */
    const char *(*rule_name)(int rule);           /* returns the name of a rule, from 0; NULL behind
                                                     the last one */
    const char *about[SPW_RECORD_ABOUT_COUNT]; /* by enum spw_record_about, without host and card;
                                                  NULL: unknown */
    char card[160];                            /* the driver's name of device 0; "": unknown */
};

/* The last values in the block. The next event is stored relative to them. */
struct spw_record_context {
    int device;
    uint64_t stream;
    uint32_t thread;
    uint64_t address; /* in units of 256 bytes */
    uint64_t gauges[SPW_DEVICES_MAX][SPW_RECORD_GAUGE_COUNT];
};

/* Appends events to the file. */
struct spw_record_writer {
    uint8_t *at, *end; /* position in the current block, and its end; NULL if the file is full */
    uint64_t time;     /* time of the last event, in units */
    struct spw_record_timeline timeline;
    bool ticks; /* true: time comes from the processor's clock; false: from the system's */
    struct spw_record_context last;
    struct spw_record_header *header;
    struct spw_record_block *block;
    size_t offset; /* offset of the block in the file */
    uint32_t sequence;
    struct spw_record_file file;
};

/* The marks and steps of the program. The program may make any number of them. */
struct spw_record_marks {
    uint64_t bytes;     /* bytes that marks and steps use, including the ends of open marks */
    uint64_t open;      /* number of marks that have begun; room for their ends is reserved */
    uint64_t lost_open; /* number of open marks whose beginning was lost */
};

/* The numbers of texts are less than this (callsite/capture.c). */
enum { SPW_RECORD_TEXTS = 16 << 20 };

/* The parts of call sites that the file already contains. */
struct spw_record_known {
    uint8_t sites[SPW_CALLSITE_MOST + 1];
    uint8_t texts[SPW_RECORD_TEXTS / 4 / 8]; /* one bit for each text; numbers of texts are
                                                multiples of 4 */
    size_t modules;
};

/* Driver calls of spillway's own on one device. */
struct spw_record_own {
    _Atomic uint64_t driver_calls, driver_ns;
};

struct spw_record {
    /* Every call reads these two. Only the start and the end of a recording change them. */
    _Atomic bool events; /* events are recorded */
    _Atomic bool uses;   /* the blocks that calls use are also recorded */
    _Alignas(64) struct spw_record_writer writer;
    uint32_t number;  /* number of the recording in this process, from 1 */
    uint32_t threads; /* number of threads seen */
    uint32_t steps;
    struct spw_record_marks marks;
    struct spw_counters *counters[SPW_DEVICES_MAX];
    bool at_exit; /* the exit handler is registered */
    /* The arguments for a file that is yet to be created. Without a path, no file is to be
     * created. */
    struct spw_record_start due;
    char due_path[SPW_RECORD_PATH];
    struct spw_record_known known;
    _Alignas(64) struct spw_record_own own[SPW_DEVICES_MAX]; /* changed without the lock */
};

extern struct spw_record spw_record;
