/* Statistics: counters in shared memory, the summary, the statistics file. It does not know CUDA.
 *
 *   exit      writes the summary and the file at the end of the process
 *   file      writes the statistics file
 *   output    the paths of the result files
 *   path      the path of the statistics file, and its owner
 *   process   the name of a process, from /proc
 *   remap     replaces pages that another process shares by zeroed pages
 *   shm       a second shared mapping, for the call sites and their charges
 *   state     the state of the folder in one object
 *   stats     the struct of all figures, in shared memory
 *   summary   a few lines for people at the end of the program
 *
 * The struct exists from the first CUDA initialisation on. Its memory is a file in the launcher's
 * folder (SPILLWAY_RUN_DIR), named after the pid, or a memfd called "spillway-stats". A viewer can
 * therefore read it. If a child dies, the launcher can write the child's statistics file
 * (stats/output.h). Counters are relaxed atomics, written without a lock. Strings are written
 * before `state` becomes RUNNING, and never change after that. A change of the layout raises
 * `version`; readers refuse other versions. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/bounds.h"
#include "common/counters.h"
#include "common/likely.h"
#include "common/options.h"
#include "pool/accounts.h"
#include "stats/output.h"

enum { SPW_STATS_MAGIC = 0x53505753, SPW_STATS_VERSION = 17 };
enum { SPW_STATS_CALLS = 64, SPW_STATS_NAME = 48 };
enum { SPW_STATS_THREAD = 16, SPW_STATS_RULE = 72, SPW_STATS_PART = 160 };
enum { SPW_STATS_HOLDERS = 10, SPW_STATS_LABEL = 160, SPW_STATS_ADVICE = 768 };
enum spw_stats_state { SPW_STATS_EMPTY, SPW_STATS_RUNNING, SPW_STATS_WRITTEN };

/* An allocation that was refused as out of memory. */
struct spw_stats_refused {
    uint64_t number;        /* number of the allocation on this device, from 1 */
    uint64_t bytes;         /* requested size */
    uint64_t missing_bytes; /* bytes that were lacking; 0: enough memory was free, but could not be
                               used */
    uint64_t time_ns;       /* time in CLOCK_MONOTONIC; 0: there was no refusal */
    int tid;
    char api[SPW_STATS_NAME]; /* the function that the program called */
    char thread[SPW_STATS_THREAD];
};

/* The allocations on a device that were refused as out of memory. */
struct spw_stats_refusal {
    atomic_flag busy;               /* held while a thread writes or reads the members below */
    _Atomic uint64_t count;         /* number of refusals; 0: the members below are not valid */
    _Atomic uint64_t pending_bytes; /* size of the last refusal; 0 after a request of at least this
                                       size was granted */
    uint64_t requests;              /* refused requests; a request that is repeated counts once */
    uint64_t overcome;              /* refused requests that were granted later */
    struct spw_stats_refused last;
    struct spw_stats_refused lost; /* the latest refusal before `last` whose request was never
                                      granted */
};

/* A call site that held memory when an allocation was refused. */
struct spw_stats_holder {
    uint64_t site; /* id of the site in the statistics file; 0: unknown */
    uint64_t bytes;
    uint64_t blocks;
    char label[SPW_STATS_LABEL];
};

/* The last out-of-memory report that was written in full. Unknown figures are 0. */
struct spw_stats_oom {
    atomic_flag busy;       /* held while a thread writes or reads the members below */
    _Atomic uint64_t count; /* number of reports; 0: the members below are not valid */
    int device;
    uint64_t bytes;         /* requested size */
    uint64_t missing_bytes; /* as in struct spw_stats_refusal */
    uint64_t site;
    char api[SPW_STATS_NAME];
    char label[SPW_STATS_LABEL];      /* label of the call site that made the request */
    uint64_t total_bytes, free_bytes; /* of the device, as the driver reports them */
    uint64_t limit_bytes, live_bytes, committed_bytes;
    uint64_t spare_bytes, largest_free_bytes;        /* committed, but under no block */
    uint64_t host_bytes, host_limit_bytes;           /* of the host tier */
    uint64_t host_bound;                             /* the limit behind host_limit_bytes */
    uint64_t host_total_bytes, host_available_bytes; /* of the machine */
    bool one_memory; /* the device has no memory of its own: total and free are of the machine */
    uint64_t reserve_bytes;      /* one memory: what stays free for the system */
    uint64_t process_host_bytes; /* anonymous memory of this process */
    uint64_t pinned_bytes;       /* page-locked by the program */
    uint64_t passed_bytes;       /* allocations of the driver that are not among committed_bytes */
    bool usage_known;            /* the next two members are valid */
    uint64_t own_other_bytes;    /* memory of this process outside the pool: context, code,
                                    libraries */
    uint64_t other_process_bytes;
    uint64_t holding_sites;
    int holder_count;
    struct spw_stats_holder holders[SPW_STATS_HOLDERS]; /* the largest first */
    char rule[SPW_STATS_ADVICE];                        /* a policy rule that would help, as JSON;
                                                           "": none */
    uint64_t rule_bytes;
};

struct spw_stats_device {
    struct spw_counters counters;
    _Atomic uint64_t driver_calls[SPW_STATS_CALLS]; /* calls that spillway made for itself */
    struct spw_stats_refusal refusal;
    struct spw_account rules[SPW_ACCOUNTS]; /* of the rules of the policy in force */
};

/* The request of another process to pause this process (service/control.h). The requester writes
 * `part`, `name`, `folder`, `wait_ms` and `action`. It then increments `requests` and wakes the
 * futex. This process writes the results. It then sets `answered` to the number of the request and
 * wakes that futex. */
/* NONE  -- the thread of pauses runs -->  LISTENING
 * LISTENING, PAUSED_IN_PART  -- hold -->  HELD  -- resume, or nothing follows -->  the state before
 * LISTENING, HELD, PAUSED_IN_PART  -- pause -->  PAUSED or PAUSED_ON_DEMAND
 * LISTENING, PAUSED_IN_PART  -- pause a part -->  PAUSED_IN_PART
 * PAUSED_IN_PART, PAUSED, PAUSED_ON_DEMAND  -- resume -->  LISTENING
 * PAUSED_ON_DEMAND  -- the program needs the device -->  LISTENING
 * PAUSED_IN_PART  -- resume the last part, or a pause that fails halfway -->  LISTENING */
enum spw_control_state {
    SPW_CONTROL_NONE, /* no thread waits for requests */
    SPW_CONTROL_LISTENING,
    SPW_CONTROL_HELD,             /* the program waits, and a pause will follow soon */
    SPW_CONTROL_PAUSED_IN_PART,   /* some memory is on the host, and the program goes on */
    SPW_CONTROL_PAUSED,           /* the program waits for the end of the pause */
    SPW_CONTROL_PAUSED_ON_DEMAND, /* the pause ends as soon as the program needs the device */
};
enum spw_control_action {
    SPW_CONTROL_PAUSE = 1,
    SPW_CONTROL_PAUSE_ON_DEMAND,
    SPW_CONTROL_RESUME,
    SPW_CONTROL_HOLD, /* comes before a pause of all memory: see spw_service_pause_hold */
    SPW_CONTROL_STEP, /* like HOLD, for a process that is already held: lets one call pass first */
};
/* The memory that a request refers to. */
enum spw_control_part {
    SPW_CONTROL_PART_ALL,
    SPW_CONTROL_PART_RULE, /* of a rule of the policy */
    SPW_CONTROL_PART_SITE, /* of call sites, by a part of their labels */
    SPW_CONTROL_PART_TAG,  /* of a tag */
};
enum spw_control_outcome {
    SPW_CONTROL_DONE,
    SPW_CONTROL_ALREADY,    /* the process was already in the requested state */
    SPW_CONTROL_UNUSED,     /* the process uses no device memory */
    SPW_CONTROL_NO_PART,    /* no part has this name */
    SPW_CONTROL_WHOLE,      /* all memory is paused, so a part of it cannot return separately */
    SPW_CONTROL_IMPOSSIBLE, /* memory cannot move to the host: spilling is off or does not work */
    SPW_CONTROL_CAPTURING,  /* a capture is open, or a library submits work that spillway does not
                               see */
    SPW_CONTROL_BUSY,       /* the device did not become idle in time */
    SPW_CONTROL_NO_FILE,    /* the file could not be created: see `error` */
    SPW_CONTROL_NO_ROOM,    /* there is no room for memory that is in the file: the pause goes on */
    SPW_CONTROL_UNREADABLE, /* memory in the file cannot be read: the pause goes on */
    SPW_CONTROL_OUTCOMES
};

struct spw_stats_control {
    _Atomic uint32_t state;      /* enum spw_control_state */
    _Atomic uint32_t requests;   /* number of requests so far, a futex word; 0: none yet */
    _Atomic uint32_t action;     /* enum spw_control_action */
    _Atomic uint32_t wait_ms;    /* longest wait for the program and its devices */
    _Atomic uint32_t part;       /* enum spw_control_part */
    char name[SPW_STATS_PART];   /* name of the part */
    char folder[SPW_STATS_PATH]; /* folder of the file for all memory; "": the memory moves to the
                                    host */
    _Atomic uint32_t answered;   /* number of the last request that was answered, a futex word */
    _Atomic uint32_t outcome;    /* enum spw_control_outcome */
    _Atomic uint32_t host_full;
    _Atomic uint32_t error;                   /* errno of the file; 0: none */
    _Atomic uint64_t moved_bytes, left_bytes; /* struct spw_pause_result */
};

struct spw_stats {
    uint32_t magic;
    uint32_t version;
    uint64_t bytes;    /* sizeof(struct spw_stats) of the process that writes */
    _Atomic int state; /* enum spw_stats_state */
    int pid;
    int device_count; /* number of visible devices */
    uint64_t start;   /* start of the process, in clock ticks since boot: detects that a pid was
                         reused */
    uint8_t summary;  /* enum spw_summary: SPILLWAY_SUMMARY */
    char mode[SPW_STATS_NAME];
    char why[SPW_STATS_PATH];     /* the reason for this mode, in words */
    char process[SPW_STATS_PATH]; /* name of the program, for the first line of the summary */
    char sites[SPW_STATS_PATH];   /* path of the call sites' file (callsite/shm.h); "": there is
                                     none */
    char policy[SPW_STATS_PATH];  /* path of the policy file in force; "": there is none */
    char rule_names[SPW_ACCOUNTS][SPW_STATS_RULE];    /* names of the policy's rules; "" ends the
                                                         list */
    char call_names[SPW_STATS_CALLS][SPW_STATS_NAME]; /* names of the functions in driver_calls; ""
                                                         ends the list */
    int64_t rank;                                     /* rank in a distributed job; -1: none */
    uint32_t ranks;                                   /* number of the job's ranks; 0: not known */
    bool of_rank;   /* the name of the statistics file contains a rank: %r */
    bool simulated; /* the GPU is simulated */
    bool safe;      /* memory moves while the device rests: SPILLWAY_OVERLAP=safe */
    struct spw_stats_control control;
    struct spw_stats_oom oom;
    struct spw_stats_device devices[SPW_DEVICES_MAX];
};

/* Creates the mapping; if that fails, allocates private memory instead. The result is never NULL.
 * Called once per process, and again after spw_stats_forget, with the same address as result. The
 * state stays EMPTY until spw_stats_start. The caller serialises calls. */
struct spw_stats *spw_stats_create(void);

/* Returns the mapping of this process; NULL before spw_stats_create. */
struct spw_stats *spw_stats_mine(void);

/* Claim and release a record that threads share, by its flag `busy`. A thread must claim the record
 * to read or write it. Claiming waits at most a few milliseconds for another thread, and returns
 * false if that thread still has the record. The caller must then not use the record. */
bool spw_stats_claim(atomic_flag *busy);
void spw_stats_unclaim(atomic_flag *busy);

/* Records that an allocation of the calling thread was refused as out of memory. The arguments are
 * members of struct spw_stats_refused. Any thread. */
void spw_stats_refuse(struct spw_stats_refusal *refusal, const char *api, uint64_t number,
                      uint64_t bytes, uint64_t missing_bytes);

/* Records that an allocation succeeded that may repeat a refused one. Any thread. */
void spw_stats_overcome(struct spw_stats_refusal *refusal);
static inline void spw_stats_grant(struct spw_stats_refusal *refusal, uint64_t bytes)
{
    uint64_t pending = atomic_load_explicit(&refusal->pending_bytes, memory_order_relaxed);

    if (SPW_UNLIKELY(pending > 0) && bytes >= pending) {
        spw_stats_overcome(refusal);
    }
}

/* In a child after fork: replaces the parent's mapping by memory of the child, at the same address,
 * so that old pointers stay valid. If the kernel refuses, returns false and changes nothing; the
 * child must then not write to the mapping. Only async-signal-safe calls. */
bool spw_stats_forget(void);

/* Copies the statistics of another process from its file. That process may change or truncate the
 * file at any time, so nothing in the file is trusted: in the copy, all texts are terminated and
 * all counts are in range. Returns false if it is not such a file, or has another version;
 * *ret_stats is then undefined. */
bool spw_stats_read(int fd, struct spw_stats *ret_stats);

/* Like spw_stats_read, for the regular file at `path`. The result is in new memory, which
 * spw_stats_close frees. Returns NULL if the file cannot be read. */
struct spw_stats *spw_stats_open(const char *path);
void spw_stats_close(struct spw_stats *stats);
