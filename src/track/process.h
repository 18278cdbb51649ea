/* The state of spillway in the process: the driver, the devices, and if calls are served.
 *
 * Locking: spw_locks.process covers starting, and the opening and closing of pools. Tables have
 * locks of their own; common/lock.def gives the order. No lock is held while the real driver does
 * the program's work (spw_locks.primary excepted), nor around the dynamic loader. Atomic members
 * may be read without a lock. A lease (lease.h) keeps a pool from being destroyed. */
#pragma once

#include "common/likely.h"
#include "track/state.h"

/* A function that is exported under its own name. */
#define SPW_EXPORT __attribute__((visibility("default")))

/* Functions that this folder calls and that need folders above it; preload.c defines them. They are
 * called with spw_locks.process held, except those with "No lock". */
struct spw_track_ops {
    /* Reads the policy. No lock: it calls the dynamic loader. May be called more than once. */
    void (*prepare)(void);
    /* Reads options, opens log and statistics, sets spw_process.mode and check and every device's
     * counters, watches for fork. CUDA is initialised and the devices are known. */
    void (*start)(struct spw_process *process);
    /* Makes the pool of a device, its backend and its host tier (NULL: spilling is off). `context`
     * is a context of the device, NULL when none is known. */
    enum spw_err (*open)(struct spw_device *device, CUcontext context, struct spw_pool **ret_pool,
                         struct spw_backend **ret_backend, struct spw_migrate **ret_tier);
    /* Called after a pool was opened. No lock. */
    void (*opened)(void);
    /* Asks other processes for memory of a full device. True when some was freed. No lock. */
    bool (*ask_others)(struct spw_device *device, uint64_t bytes);
    /* Looks for PyTorch's allocator, after CUDA was initialised or when PyTorch allocates. No
     * lock. */
    void (*look)(void);
};

extern const struct spw_track_ops spw_track_ops;

/* The program's call that is under way on this thread: of the CUDA runtime, of the driver, or of
 * the driver through the runtime. */
struct spw_outer_call {
    enum spw_fn fn;      /* of the runtime; SPW_FN_COUNT: none */
    const void *caller;  /* return address of the runtime's function */
    const void *frame;   /* address of its frame, just below that of the function that called it */
    const void *entered; /* return address of the driver's function that was entered last: in the
                          * program, or in the runtime. NULL: none since the runtime was entered */
};

extern _Thread_local struct spw_outer_call spw_track_outer
    __attribute__((tls_model("initial-exec")));

/* The slow paths of the inline functions below. */
struct spw_driver *spw_track_load(bool load);
bool spw_track_start_late(void);

/* The real driver, loaded at first use. Never NULL: without a driver, its functions return an
 * error.
 */
static inline struct spw_driver *spw_track_driver(void)
{
    struct spw_driver *driver = atomic_load_explicit(&spw_process.driver, memory_order_acquire);

    return SPW_LIKELY(driver != NULL) ? driver : spw_track_load(true);
}

static inline bool spw_track_runs(void)
{
    return SPW_LIKELY(atomic_load_explicit(&spw_process.state, memory_order_acquire) ==
                      SPW_PROCESS_RUNNING) ||
           spw_track_start_late();
}

/* True when spillway serves the call: it is not one of our own, and CUDA is initialised. */
static inline bool spw_track_serves(void)
{
    return SPW_LIKELY(!spw_driver_inside()) && spw_track_runs();
}

/* Likewise, at the entry of a driver function, which was called from `caller`. */
static inline bool spw_track_enter(const void *caller)
{
    if (SPW_UNLIKELY(spw_driver_inside())) {
        return false;
    }
    spw_track_outer.entered = caller;
    return spw_track_runs();
}

/* The real driver; NULL if it is not loaded. */
struct spw_driver *spw_track_loaded(void);

/* True with SPILLWAY=off: no function is substituted. Cheap after the first call. */
bool spw_track_off(void);

/* True if the pool serves each of PyTorch's tensors. */
static inline bool spw_track_torch_is_tensor(void)
{
    return atomic_load(&spw_process.torch.state) == SPW_TORCH_TENSORS;
}

/* Starts spillway after CUDA was initialised: once, and again in a child after fork. */
void spw_track_start(void);
