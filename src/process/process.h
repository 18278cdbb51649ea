/* spillway in the process: its driver, its settings, whether calls are served, which library calls.
 * It does not know devices.
 *
 *   caller     the library that asks for memory, by its return address
 *   callers    libraries whose allocations need special treatment
 *   describe   describes the caller for people
 *   native     the state of PyTorch's native allocator on this thread
 *   process    starts spillway once, and answers whether calls are served
 *   state      the driver and the settings
 *   unseen     libraries that submit work without calling an entry
 *
 * Locking: spw_locks.process guards the start, and the opening and closing of pools. Tables have
 * locks of their own; system/lock.def gives the order. No lock except spw_locks.primary is held
 * while the real driver does the program's work. No lock is held during a call of the dynamic
 * loader. */
#pragma once

#include "common/likely.h"
#include "process/state.h"

/* Marks a function that is exported under its own name. */
#define SPW_EXPORT __attribute__((visibility("default")))

/* Functions of higher folders that this folder calls; preload.c defines them. They are called with
 * spw_locks.process held, unless marked "No lock". */
struct spw_process_ops {
    /* Looks for PyTorch's allocator, after CUDA was initialised and when PyTorch allocates. No
     * lock, because it calls the dynamic loader. */
    void (*look)(void);
    /* Finds the devices, reads the options, opens the log and the statistics, and registers the
     * fork handlers. Returns false if CUDA is not initialised. */
    bool (*start)(struct spw_process *process);
    /* Called after a pool was opened. No lock. */
    void (*opened)(void);
};

extern const struct spw_process_ops spw_process_ops;

/* The current call of the program on this thread: a call of the CUDA runtime, of the driver, or of
 * the driver through the runtime. */
struct spw_outer_call {
    enum spw_fn fn;     /* function of the runtime; SPW_FN_COUNT: none */
    const void *caller; /* return address of the runtime's function */
    const void *frame;  /* address of the runtime function's frame, just below its caller's frame */
    const void *entered; /* return address, in the program or the runtime, of the last driver
                            function that was entered. NULL: no driver function was entered since
                            the runtime's function */
};

extern _Thread_local struct spw_outer_call spw_process_outer
    __attribute__((tls_model("initial-exec")));

/* The slow paths of the inline functions below. */
struct spw_driver *spw_process_load(bool load);
bool spw_process_start_late(void);

/* Returns the real driver, and loads it at first use. Never NULL: if there is no driver, the
 * functions of the result return an error. */
static inline struct spw_driver *spw_process_driver(void)
{
    struct spw_driver *driver = atomic_load_explicit(&spw_process.driver, memory_order_acquire);

    return SPW_LIKELY(driver != NULL) ? driver : spw_process_load(true);
}

/* Returns the real driver, in a call that spillway serves. The driver is already loaded there. */
static inline struct spw_driver *spw_process_driver_serving(void)
{
    return atomic_load_explicit(&spw_process.driver, memory_order_relaxed);
}

/* Returns the settings of the options. They are valid while calls are served. */
static inline const struct spw_settings *spw_process_settings(void)
{
    return &spw_process.settings;
}

/* Returns true with mode observe, SPILLWAY_CHECK or a policy. An allocation checks for each of
 * these three only if this is true. */
static inline bool spw_process_is_unusual(void)
{
    return SPW_UNLIKELY(atomic_load_explicit(&spw_process.unusual, memory_order_acquire));
}

/* Returns true while the process ends. Nothing is released then. */
static inline bool spw_process_is_leaving(void)
{
    return atomic_load(&spw_process.leaving);
}

/* Returns true if calls are served. Does not start spillway. */
static inline bool spw_process_is_running(void)
{
    return atomic_load_explicit(&spw_process.state, memory_order_acquire) == SPW_PROCESS_RUNNING;
}

/* Returns true if calls are served. Starts spillway first, if CUDA was initialised in the
 * meantime. */
static inline bool spw_process_runs(void)
{
    return SPW_LIKELY(spw_process_is_running()) || spw_process_start_late();
}

/* Returns the statistics of this process; NULL before the start. */
static inline struct spw_stats *spw_process_stats(void)
{
    return spw_process.stats;
}

/* Returns true if spillway serves the current call: the call is not spillway's own, and CUDA is
 * initialised. */
static inline bool spw_process_serves(void)
{
    return SPW_LIKELY(!spw_driver_inside()) && spw_process_runs();
}

/* Like spw_process_serves, at the entry of a driver function. Records the return address
 * `caller`. */
static inline bool spw_process_enter(const void *caller)
{
    if (SPW_UNLIKELY(spw_driver_inside())) {
        return false;
    }
    spw_process_outer.entered = caller;
    return spw_process_runs();
}

/* Returns the real driver; NULL if it is not loaded. */
struct spw_driver *spw_process_loaded(void);

/* Returns true with SPILLWAY=off. No function is replaced then. Cheap after the first call. */
bool spw_process_off(void);

/* Returns true if the pool serves each of PyTorch's tensors. */
static inline bool spw_process_torch_is_tensor(void)
{
    return atomic_load(&spw_process.torch.state) == SPW_TORCH_TENSORS;
}

/* Starts spillway after CUDA was initialised: once in each process, and again in a child after
 * fork. */
void spw_process_start(void);
