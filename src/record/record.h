/* The recording: the events of the device memory of a process, in a mapped file. It does not know
 * CUDA.
 *
 *   checksum   CRC-32 for the blocks of the file
 *   file       the file: its name, its memory, its growth
 *   format     the layout of the file (docs/reference/recording-format.md)
 *   gauges     the figures of a device that are recorded
 *   record     appends events, from any thread
 *   sites      writes each call site once, before the first event that refers to it
 *   state      the state of the folder in one object
 *   ticks      reads the processor's own clock
 *   timeline   time from the processor's clock, compared with the system's
 *   writer     appends events to the blocks of the file
 *
 * The functions below may be called on any thread. The caller must not hold a lock that follows
 * `record` in system/lock.def. Each call costs a lock and a few dozen nanoseconds. The functions
 * may be called only while spw_record_active() is true. They never fail; lost events are
 * counted. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/counters.h"
#include "common/likely.h"
#include "record/format.h"
#include "record/state.h"

static inline bool spw_record_active(void)
{
    return SPW_UNLIKELY(atomic_load_explicit(&spw_record.events, memory_order_relaxed));
}

/* Returns true while the recording also contains the blocks that calls use. */
static inline bool spw_record_uses(void)
{
    return SPW_UNLIKELY(atomic_load_explicit(&spw_record.uses, memory_order_relaxed));
}

/* Starts a recording, and registers the exit handler that ends it. The file is created at the first
 * allocation, mark or step. A process that only looks for devices therefore leaves no file. On
 * failure, logs one line. Data that members of `start` point to must stay valid, except the path.
 * The caller serialises. */
void spw_record_start(const struct spw_record_start *start);

/* In a child after fork: detaches from the parent's recording. Only async-signal-safe calls. */
void spw_record_forget(void);

/* ---- events ---- */

struct spw_record_alloc {
    int device;
    uint64_t stream; /* id of the stream; 0: without a stream */
    uint64_t address, bytes;
    uint32_t site;
    enum spw_record_source source;
    bool charged;        /* not in the pool, but counts as live */
    uint64_t host_bytes; /* the part of `bytes` that is on the host */
    unsigned rule;       /* number of the rule that decided, from 1; 0: none */
};

/* Records an allocation. Called before the program gets its address. */
void spw_record_alloc(const struct spw_record_alloc *alloc);

/* Records a free. Called before the block is freed, because its address may be used again at
 * once. */
void spw_record_free(int device, uint64_t stream, uint64_t address);

/* Records a call that is about to be submitted, and the addresses in the device's pool that it
 * names, at most SPW_RECORD_USED of them. `kernel`: the call launches a kernel. Called only while
 * spw_record_uses() is true. */
void spw_record_use(int device, const uint64_t *addresses, size_t count, bool kernel);

/* The program may make any number of steps and marks, so these may use only a share of the file
 * (SPW_RECORD_MARK_SHARE). Steps and marks beyond that share are lost, and counted. */

/* Records the beginning of a step that the program marked. */
void spw_record_step(void);

/* Records the beginning or the end of a part of the program. The program gave the part its name. */
void spw_record_mark(const char *name, bool begin);

/* Records what is known of a pass of a module. `kind` is an enum spw_record_pass (format.h). */
void spw_record_pass(int kind, const char *text);

struct spw_record_oom {
    int device;
    uint64_t bytes, missing_bytes;
    uint32_t site;
    uint64_t live_bytes, committed_bytes, limit_bytes;
};

/* Records an allocation that is about to fail with out of memory. */
void spw_record_oom(const struct spw_record_oom *oom);

/* Records a completed move. Submissions were blocked for `ns`. The ranges of the move must be
 * recorded next. */
void spw_record_move(int device, uint64_t to_host_bytes, uint64_t to_device_bytes, uint64_t ns,
                     bool predicted);
void spw_record_range(int device, uint64_t address, uint64_t bytes, bool to_host);

/* Records a driver call of spillway's own that took `ns`. Short calls are only added to the
 * sums. */
void spw_record_call(int device, int call, uint64_t ns);
