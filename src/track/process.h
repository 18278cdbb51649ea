/* The state of spillway in the process: the driver, the devices, and if calls are served.
 *
 * Locking: spw_locks.process covers starting, and the opening and closing of pools. Tables have
 * locks of their own; common/lock.def gives the order. No lock is held while the real driver does
 * the program's work, nor around the dynamic loader. Atomic members may be read without a lock. */
#pragma once

#include "track/state.h"

/* An entry that programs find under its own name. */
#define SPW_EXPORT              __attribute__((visibility("default")))
#define SPW_LIKELY(condition)   __builtin_expect(!!(condition), 1)
#define SPW_UNLIKELY(condition) __builtin_expect(!!(condition), 0)

/* What this layer needs of those beside it; defined by preload.c, the only file that knows all.
 * Members are called with spw_locks.process held, those with a `vm` with the pool's lock as well,
 * unless they say otherwise. */
struct spw_track_ops {
    /* Reads the policy. No lock: the dynamic loader is asked. May be called more than once. */
    void (*prepare)(void);
    /* Reads options, opens log and statistics, sets spw_process.mode and check and every device's
     * counters, watches for fork. CUDA is initialised and the devices are known. */
    void (*start)(struct spw_process *process);
    /* Makes the pool of a device, the seam below it and the tier, NULL if there is to be none;
     * `context` is one of the device's, or NULL when none is known. No pool lock. */
    enum spw_err (*open)(struct spw_device *device, CUcontext context, struct spw_pool **ret_pool,
                         void **ret_vm, struct spw_migrate **ret_tier);
    /* Gives back what open made. No pool lock. */
    void (*close)(struct spw_pool *pool, void *vm, enum spw_closing closing);
    /* The host node of the tier's chunks. No lock. */
    int (*host_node)(void *vm);
    /* Lets device `accessor` reach what is mapped from now on, or not any more. True when that
     * changed something. */
    bool (*grant)(void *vm, int accessor, CUmemAccess_flags access);
    /* A context of the device, or of a peer that may reach its memory, was seen for the first time,
     * or is about to go. */
    void (*note_context)(void *vm, CUcontext context, bool peer);
    void (*forget_context)(void *vm, CUcontext context);
    /* Writes the statistics file. No lock. */
    void (*report)(void);
    /* In a child after fork: the parent's statistics are not ours. */
    void (*forget)(void);
};

extern const struct spw_track_ops spw_track_ops;

/* A call of the runtime that is under way on this thread. */
struct spw_track_call {
    enum spw_fn fn;     /* SPW_FN_COUNT: none */
    const void *caller; /* where the program called it */
    bool arrived;       /* it came through a driver door */
};

extern _Thread_local struct spw_track_call spw_track_call
    __attribute__((tls_model("initial-exec")));

/* The slow halves of the inline functions below. */
struct spw_driver *spw_track_load(bool load);
bool spw_track_start_late(void);

/* The real driver, loaded if nobody has; never NULL: without one its functions answer an error. */
static inline struct spw_driver *spw_track_driver(void)
{
    struct spw_driver *driver = atomic_load_explicit(&spw_process.driver, memory_order_acquire);

    return SPW_LIKELY(driver != NULL) ? driver : spw_track_load(true);
}

/* Whether a call of the program is ours to answer: not one of our own, and CUDA is in use. */
static inline bool spw_track_serves(void)
{
    if (SPW_UNLIKELY(spw_driver_inside())) {
        return false;
    }
    return SPW_LIKELY(atomic_load_explicit(&spw_process.state, memory_order_acquire) ==
                      SPW_PROCESS_RUNNING) ||
           spw_track_start_late();
}

/* The real driver if it is loaded, else NULL. */
struct spw_driver *spw_track_loaded(void);

/* Whether SPILLWAY=off: nothing is substituted. Cheap after the first time. */
bool spw_track_off(void);

/* CUDA was initialised: starts, once; again in a child after fork. */
void spw_track_start(void);
