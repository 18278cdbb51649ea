/* The state of the hook layer: how calls reach spillway, and for which devices it answers.
 *
 * One struct for the process. Locking: `lock` covers starting and the opening and closing of pools;
 * tables have locks of their own (see stream.h, ledger.h, capture.h). The order is: lock, streams,
 * captures, ledger, pools by ordinal. No lock is held while the real driver is asked to do the
 * program's work, nor around the dynamic loader. What is atomic may be read without a lock. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/counters.h"
#include "common/devices.h"
#include "common/err.h"
#include "common/options.h"
#include "driver/driver.h"
#include "pool/pool.h"
#include "stats/stats.h"
#include "migrate/migrate.h"

/* An entry that programs find under its own name. */
#define SPW_EXPORT              __attribute__((visibility("default")))
#define SPW_LIKELY(condition)   __builtin_expect(!!(condition), 1)
#define SPW_UNLIKELY(condition) __builtin_expect(!!(condition), 0)

enum spw_process_state {
    SPW_PROCESS_IDLE,    /* CUDA is not initialised, as far as we saw */
    SPW_PROCESS_RUNNING, /* calls are served */
    SPW_PROCESS_OFF,     /* switched off: every call passes */
    SPW_PROCESS_CHILD,   /* after fork: every call passes until the child initialises CUDA itself */
};

/* What PyTorch was told when it asked how to allocate. */
enum spw_torch {
    SPW_TORCH_UNSEEN,   /* it did not ask */
    SPW_TORCH_ANSWERED, /* the backend that spillway serves tensor by tensor */
    SPW_TORCH_SAME,     /* the user's own settings, which name that backend */
    SPW_TORCH_OTHER,    /* the user's own settings, which do not; or nothing */
};

/* Why a pool is closed. No work is pending on the device, as far as it is there. */
enum spw_closing {
    SPW_CLOSING_ORDERLY,       /* its contexts are there still */
    SPW_CLOSING_CONTEXTS_GONE, /* their events went with them: memory alone can be given back */
    SPW_CLOSING_FORKED,        /* a child's copy: the driver does not work here at all */
};

/* One visible device. */
struct spw_device {
    int ordinal;
    CUdevice handle;
    struct spw_counters *counters;      /* in the statistics */
    struct spw_stats_refusal *refusal;  /* there too */
    struct spw_tally *rules;            /* and of the policy's rules */
    uint64_t total_bytes;               /* of its memory; 0 until a pool is opened */
    struct spw_stats_oom *oom;          /* there too, one for all devices */
    struct spw_charges *charges;        /* by site; NULL when none are kept */
    CUmemoryPool default_pool;          /* of the driver, NULL when it has none */
    _Atomic(CUmemoryPool) current_pool; /* what cuMemAllocAsync allocates from */
    _Atomic(struct spw_pool *) pool;    /* NULL until first used, and when it cannot be had */
    void *vm;                           /* the seam below the pool, set and cleared with it */
    struct spw_migrate *tier;           /* the same; NULL: nothing goes to the host */
    _Atomic bool failed;                /* the pool could not be had: calls pass */
    /* Who else may reach the device's memory: CUmemAccess_flags by accessor, for now and for a
     * pool opened later. */
    _Atomic uint8_t access[SPW_DEVICES_MAX];
};

struct spw_process {
    _Atomic(struct spw_driver *) driver; /* NULL until it is loaded */
    _Atomic int state;                   /* enum spw_process_state */
    pthread_mutex_t lock;
    _Atomic int switched; /* SPILLWAY, read: 0 not yet, 1 on, 2 off */
    bool at_fork;         /* the handlers are registered */
    bool at_exit;         /* so is that of the end */
    /* The process is ending, and the driver may be half gone: blocks are served still, but nothing
     * is torn down with a context. */
    _Atomic bool leaving;
    enum spw_mode mode;
    bool check;        /* SPILLWAY_CHECK: look for broken invariants */
    _Atomic int torch; /* enum spw_torch */
    int device_count;
    struct spw_device devices[SPW_DEVICES_MAX];
};

extern struct spw_process spw_process;

/* What this layer needs of those beside it; defined by preload.c, the only file that knows all.
 * Members are called with spw_process.lock held, those with a `vm` with the pool's lock as well,
 * unless they say otherwise. */
struct spw_seam {
    /* Reads options, opens log and statistics, sets spw_process.mode and check and every device's
     * counters. CUDA is initialised and the devices are known. */
    void (*start)(struct spw_process *hook);
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

extern const struct spw_seam spw_seam;

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

/* After an out of memory of the real driver: gives up the spare memory of every pool, for which
 * device was full is not known of every call; where there is none, blocks go to the host. False
 * when nothing could be freed. */
bool spw_track_make_room(void);

/* Calls the real driver; after out of memory once more if room could be made meanwhile. */
#define SPW_FORWARD(result, call)                                                                  \
    do {                                                                                           \
        (result) = (call);                                                                         \
        if (SPW_UNLIKELY((result) == CUDA_ERROR_OUT_OF_MEMORY) && spw_track_make_room()) {         \
            (result) = (call);                                                                     \
        }                                                                                          \
    } while (0)
