/* The state of spillway in the process: the driver, the settings, whether calls are served, and the
 * libraries that call. The state of other folders is in their own state.h.
 *
 * Atomic members may be read without a lock. spw_locks.process guards the start, which sets the
 * other members. All zero bytes is the state before the start. The state lives as long as the
 * process. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/options.h"
#include "driver/driver.h"

/* IDLE  -- cuInit -->  RUNNING  -- fork -->  CHILD  -- cuInit -->  RUNNING
 * IDLE  -- SPILLWAY=off -->  OFF
 * RUNNING  -- fork by the driver, or the child has no memory for its figures -->  OFF */
enum spw_process_state {
    SPW_PROCESS_IDLE,    /* CUDA is not yet known to be initialised */
    SPW_PROCESS_RUNNING, /* calls are served */
    SPW_PROCESS_OFF, /* the driver serves every call: with SPILLWAY=off, in a child that the driver
                        forked for itself, and in a forked child that has no memory for its
                        statistics */
    SPW_PROCESS_CHILD, /* after fork: the driver serves calls until the child initialises CUDA */
};

struct spw_stats;

/* How PyTorch's memory is served. */
enum spw_process_torch_state {
    SPW_TORCH_UNSEEN,   /* PyTorch is not known to be loaded */
    SPW_TORCH_TENSORS,  /* the pool serves each tensor (torch/) */
    SPW_TORCH_SEGMENTS, /* PyTorch's cache serves each tensor, and the pool serves the cache's
                           segments */
    SPW_TORCH_ASYNC,    /* PyTorch's backend cudaMallocAsync requests each tensor from the driver */
    SPW_TORCH_FOREIGN,  /* another allocator serves each tensor, such as a pluggable one */
};

/* PyTorch's allocator. */
struct spw_process_torch {
    _Atomic int state; /* enum spw_process_torch_state; stored after the other members are set */
    const char *why; /* the reason why segments are served although the mode asks for tensors; NULL:
                        the mode asks for segments */
    char version[32];
};

/* The settings of the options. Set at the start. */
struct spw_settings {
    enum spw_mode mode;
    bool check;        /* SPILLWAY_CHECK: check the invariants of pools */
    bool free_waits;   /* SPILLWAY_FREE_WAITS: cuMemFree waits for the device */
    bool whole_copies; /* SPILLWAY_SPLIT_COPIES=off */
    bool graphs_stay;  /* SPILLWAY_GRAPHS=stay */
};

/* Libraries whose GPU work does not pass through the entries (unseen.h). */
struct spw_process_unseen {
    _Atomic uint64_t changes; /* the loader's count of changes when its list was last read */
    _Atomic bool loaded;      /* one of these libraries is loaded */
};

enum { SPW_CALLERS_BITS = 8 };

struct spw_process {
    _Atomic(struct spw_driver *) driver; /* NULL until it is loaded */
    _Atomic int state;                   /* enum spw_process_state */
    _Atomic int switched;                /* the option SPILLWAY: 0 not read yet, 1 on, 2 off */
    bool at_fork;                        /* the fork handlers are registered */
    bool at_exit;                        /* the exit handler is registered */
    /* The process is ending, and the driver may already be partly gone. Blocks are still served,
     * but nothing is released with a context. */
    _Atomic bool leaving;
    _Atomic bool unusual; /* see spw_process_is_unusual */
    struct spw_settings settings;
    struct spw_process_torch torch;
    _Atomic bool mode_said;  /* the message about the mode was written (setup/mode.h) */
    struct spw_stats *stats; /* set at the start, and in a child after fork */
    struct spw_process_unseen unseen;
    /* Return addresses by their hash, each with its kind in the lowest bits (caller.h). The table
     * is on cache lines of its own, because the first call from each place changes it. */
    _Alignas(64) _Atomic uint64_t callers[1 << SPW_CALLERS_BITS];
};

extern struct spw_process spw_process;
