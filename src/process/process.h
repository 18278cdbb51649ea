/* spillway in the process: its driver, its settings, whether calls are served, which library calls.
 * It does not know devices.
 *
 *   caller     the library that asks for memory, by its return address
 *   callers    libraries with allocations unlike the program's
 *   describe   describes the caller for people
 *   native     the state of PyTorch's native allocator on this thread
 *   process    starts spillway once, and answers whether calls are served
 *   state      the driver and the settings
 *   unseen     libraries that submit work past the entries
 *
 * Locking: spw_locks.process covers starting, and the opening and closing of pools. Tables have
 * locks of their own; system/lock.def gives the order. No lock is held while the real driver does
 * the program's work (spw_locks.primary excepted), nor during a call of the dynamic loader. */
#pragma once

#include "common/likely.h"
#include "process/state.h"

/* A function that is exported under its own name. */
#define SPW_EXPORT __attribute__((visibility("default")))

/* Functions that this folder calls, but that need higher folders; preload.c defines them. They are
 * called with spw_locks.process held, except those with "No lock". */
struct spw_process_ops {
    /* Looks for PyTorch's allocator, when CUDA was initialised or PyTorch allocates. No lock: it
     * calls the dynamic loader. */
    void (*look)(void);
    /* Finds the devices, reads options, opens log and statistics, watches for fork. False when CUDA
     * is not initialised. */
    bool (*start)(struct spw_process *process);
    /* A pool was opened. No lock. */
    void (*opened)(void);
};

extern const struct spw_process_ops spw_process_ops;

/* The program's call that is under way on this thread: of the CUDA runtime, of the driver, or of
 * the driver through the runtime. */
struct spw_outer_call {
    enum spw_fn fn;     /* of the runtime; SPW_FN_COUNT: none */
    const void *caller; /* return address of the runtime's function */
    const void *frame;  /* address of the runtime function's frame, just below its caller's frame */
    const void *entered; /* return address (in the program or the runtime) of the driver function
                            that was entered last. NULL: none was entered since the runtime was */
};

extern _Thread_local struct spw_outer_call spw_process_outer
    __attribute__((tls_model("initial-exec")));

/* The slow paths of the inline functions below. */
struct spw_driver *spw_process_load(bool load);
bool spw_process_start_late(void);

/* The real driver, loaded at first use. Never NULL: without a driver, its functions return an
 * error.
 */
static inline struct spw_driver *spw_process_driver(void)
{
    struct spw_driver *driver = atomic_load_explicit(&spw_process.driver, memory_order_acquire);

    return SPW_LIKELY(driver != NULL) ? driver : spw_process_load(true);
}

/* The real driver, in a call that spillway serves: it is loaded. */
static inline struct spw_driver *spw_process_driver_serving(void)
{
    return atomic_load_explicit(&spw_process.driver, memory_order_relaxed);
}

/* The settings of the options. Valid while calls are served. */
static inline const struct spw_settings *spw_process_settings(void)
{
    return &spw_process.settings;
}

/* True with mode observe, SPILLWAY_CHECK or a policy: only then an allocation checks for each of
 * the three. */
static inline bool spw_process_is_unusual(void)
{
    return SPW_UNLIKELY(atomic_load_explicit(&spw_process.unusual, memory_order_acquire));
}

/* True while the process ends: nothing is torn down then. */
static inline bool spw_process_is_leaving(void)
{
    return atomic_load(&spw_process.leaving);
}

/* True when calls are served. Starts nothing. */
static inline bool spw_process_is_running(void)
{
    return atomic_load_explicit(&spw_process.state, memory_order_acquire) == SPW_PROCESS_RUNNING;
}

/* True when calls are served; starts spillway if CUDA was initialised in the meantime. */
static inline bool spw_process_runs(void)
{
    return SPW_LIKELY(spw_process_is_running()) || spw_process_start_late();
}

/* The statistics of this process; NULL before the start. */
static inline struct spw_stats *spw_process_stats(void)
{
    return spw_process.stats;
}

/* True when spillway serves the call: it is not one of our own, and CUDA is initialised. */
static inline bool spw_process_serves(void)
{
    return SPW_LIKELY(!spw_driver_inside()) && spw_process_runs();
}

/* The same at the entry of a driver function that was called from `caller`, which is noted. */
static inline bool spw_process_enter(const void *caller)
{
    if (SPW_UNLIKELY(spw_driver_inside())) {
        return false;
    }
    spw_process_outer.entered = caller;
    return spw_process_runs();
}

/* The real driver; NULL if it is not loaded. */
struct spw_driver *spw_process_loaded(void);

/* True with SPILLWAY=off: no function is substituted. Cheap after the first call. */
bool spw_process_off(void);

/* True if the pool serves each of PyTorch's tensors. */
static inline bool spw_process_torch_is_tensor(void)
{
    return atomic_load(&spw_process.torch.state) == SPW_TORCH_TENSORS;
}

/* Starts spillway after CUDA was initialised: once, and again in a child after fork. */
void spw_process_start(void);
