/* The recording of a process: what happened to its device memory, in a file (docs/recording.md).
 *
 * The functions below may be called on any thread and with any lock of the preloaded object held
 * but those behind `record` in common/lock.def. They cost a lock and a few dozen nanoseconds; to be
 * called only while spw_record_active() is true. They do not fail: what does not fit is counted. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/counters.h"
#include "common/likely.h"
#include "record/format.h"

extern _Atomic bool spw_record_on;

static inline bool spw_record_active(void)
{
    return SPW_UNLIKELY(atomic_load_explicit(&spw_record_on, memory_order_relaxed));
}

/* True while the recording also says which blocks calls use. */
extern _Atomic bool spw_record_uses_on;

static inline bool spw_record_uses(void)
{
    return SPW_UNLIKELY(atomic_load_explicit(&spw_record_uses_on, memory_order_relaxed));
}

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
    const char *(*rule_name)(int rule);           /* of the policy, from 0; likewise */
    const char *about[5];                         /* SPW_RECORD_NAMED_ABOUT; NULL: not known */
};

/* Begins a recording, and registers the exit handler that ends it. The file is made at the first
 * allocation, mark or step, so that a process that only asks for devices leaves none; if it cannot
 * be made then, one line of log says so. What `start` points to must stay, but for the path. The
 * caller serialises. */
void spw_record_start(const struct spw_record_start *start);

/* In a child after fork: the parent's recording is not the child's. Only async-signal-safe calls.
 */
void spw_record_forget(void);

/* ---- events ---- */

struct spw_record_alloc {
    int device;
    uint64_t stream; /* its id; 0: without a stream */
    uint64_t address, bytes;
    uint32_t site;
    enum spw_record_source source;
    bool charged;        /* not of the pool, but counts as live */
    uint64_t host_bytes; /* of it, on the host */
    unsigned rule;       /* from 1; 0: none */
};

/* After an allocation, before the program gets its address. */
void spw_record_alloc(const struct spw_record_alloc *alloc);

/* Before a block is freed, as its address may be another block's at once. */
void spw_record_free(int device, uint64_t stream, uint64_t address);

/* A call is about to be submitted that names these addresses in the device's pool, at most
 * SPW_RECORD_USED; `kernel`: it launches one. To be called while spw_record_uses() is true. */
void spw_record_use(int device, const uint64_t *addresses, size_t count, bool kernel);

/* Steps and marks have at most a share of the file (SPW_RECORD_MARK_SHARE), as the program may make
 * any number of them; what is beyond is counted. */

/* The program marked the beginning of a step. */
void spw_record_step(void);

/* A part of the program, as the program names it, begins or ends. */
void spw_record_mark(const char *name, bool begin);

struct spw_record_oom {
    int device;
    uint64_t bytes, missing_bytes;
    uint32_t site;
    uint64_t live_bytes, committed_bytes, limit_bytes;
};

/* An allocation is about to be answered with out of memory. */
void spw_record_oom(const struct spw_record_oom *oom);

/* A move has ended; `ns` is how long submissions were held back. Its ranges follow. */
void spw_record_move(int device, uint64_t to_host_bytes, uint64_t to_device_bytes, uint64_t ns,
                     bool predicted);
void spw_record_range(int device, uint64_t address, uint64_t bytes, bool to_host);

/* A call of the driver by spillway has taken `ns`. Short ones are only summed up. */
void spw_record_call(int device, int call, uint64_t ns);
