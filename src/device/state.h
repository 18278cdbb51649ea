/* The devices, with all state of each. All zero bytes is the state before the start.
 *
 * The comment of a part names the lock that guards it. Atomic members may be read without the
 * lock. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "backend/backend.h"
#include "common/counters.h"
#include "common/map.h"
#include "migrate/migrate.h"
#include "policy/decision.h"
#include "process/process.h"
#include "stats/stats.h"

/* The reason for closing a pool. No work is pending on the device. */
enum spw_closing {
    SPW_CLOSING_ORDERLY,       /* its contexts still exist */
    SPW_CLOSING_CONTEXTS_GONE, /* its contexts and events are gone: only memory is released */
    SPW_CLOSING_FORKED,        /* this is a child's copy: the driver does not work here */
};

/* The memory that a device shares with the host (one_memory.h). */
struct spw_one_memory {
    _Atomic bool known; /* the rest is valid; set under spw_locks.process */
    bool is_one;        /* false: the device has memory of its own, and the sizes are 0 */
    uint64_t total_bytes, reserve_bytes;
};

/* One visible device. */
struct spw_device {
    int ordinal;
    CUdevice handle;
    struct spw_counters *counters;     /* in the statistics, like `refusal` and `oom` */
    struct spw_stats_refusal *refusal; /* the last request that was refused */
    struct spw_ruled ruled;            /* total_bytes is 0 until the first pool is opened */
    struct spw_one_memory one_memory;
    struct spw_stats_oom *oom;   /* the out-of-memory report; one for all devices */
    struct spw_charges *charges; /* device memory by call site; NULL: not recorded */
    struct spw_charges *pinned;  /* page-locked memory by call site; NULL: not recorded */
    /* The driver's default memory pool; NULL if the device has none. Valid once default_pool_asked
     * is set (spw_device_default_pool). */
    _Atomic(CUmemoryPool) default_pool;
    _Atomic bool default_pool_asked;
    _Atomic(CUmemoryPool) current_pool; /* used by cuMemAllocAsync; NULL: the default pool */
    /* The pool is NULL before its first use, and if `failed` is set. The host tier is NULL if
     * nothing spills. Pool, backend and tier are set and cleared together, under spw_locks.process.
     * A pointer that was read under a lock or lease stays valid until that lock or lease ends. */
    _Atomic(struct spw_pool *) pool;
    _Atomic(struct spw_backend *) backend;
    _Atomic(struct spw_migrate *) tier;
    _Atomic uint32_t closing; /* number of closed pools that are not destroyed yet */
    _Atomic bool failed;      /* no pool could be made: the driver serves all calls */
    /* The free bytes that cuMemGetInfo last reported. A request of this size resets it to 0. */
    _Atomic uint64_t reported_free;
    /* CUmemAccess_flags of the other devices, by ordinal. They also apply to pools that are opened
     * later. pool_access has only the flags that the memory pool grants (access.h), and is guarded
     * by spw_locks.process. */
    _Atomic uint8_t access[SPW_DEVICES_MAX];
    uint8_t pool_access[SPW_DEVICES_MAX];
};

struct spw_enabled_peer; /* access.c */
struct spw_closed_pool;  /* device.c */
struct spw_callsite_shm;

struct spw_devices {
    int count;
    struct spw_device at[SPW_DEVICES_MAX]; /* by ordinal */
    struct spw_map contexts; /* struct known of contexts.c, by context; spw_locks.contexts */
    struct spw_enabled_peer *enabled_peers; /* spw_locks.process */

    /* The number of blocks that get their memory at the next work of their device, plus the number
     * of devices that lost memory in a move. */
    _Atomic uint64_t lazies;

    /* If above 0, copies and fills of the program are examined (submit/parts.h). Counts host
     * chunks, and mappings of the program's own host memory, unless SPILLWAY_SPLIT_COPIES is off.
     * Also counts 1, permanently, once two devices are used. */
    _Atomic uint64_t looked_at;
    _Atomic bool uses_several; /* two devices have had a context or a pool; adds 1 to looked_at */

    /* The call sites in the statistics, with the charges of each device; NULL: not recorded. Set at
     * the start. */
    struct spw_callsite_shm *sites;
    /* in_use: closed pools that calls were still using. ending: closed pools that a thread is about
     * to destroy or to move to in_use. The records of `ending` are on that thread's stack, and
     * these pools may still use contexts that other threads destroy. Both lists are guarded by
     * spw_locks.process. */
    struct spw_closed_pool *in_use, *ending;
    uint64_t pools_made;     /* so far; spw_locks.process */
    uint64_t limit_reported; /* a bit for each device: the report was written that its limit is
                                lower than the user asked for; spw_locks.process */
    atomic_flag host_limit_reported; /* the report was written that the limit is lower than the user
                                        asked for */
    atomic_flag gave_up_moves;       /* the report was written that an unseen library is loaded
                                        (process/unseen.h) */
    pthread_once_t fault_explained;  /* spw_device_explain_fault */
};

extern struct spw_devices spw_devices;

/* Returns the number of visible devices; 0 before the start. */
static inline int spw_device_count(void)
{
    return spw_devices.count;
}

/* Returns a device by its ordinal, from 0. Its address never changes. */
static inline struct spw_device *spw_device_at(int ordinal)
{
    return &spw_devices.at[ordinal];
}
