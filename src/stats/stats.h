/* The statistics of a process: a shared mapping that lives from the first CUDA initialisation.
 *
 * The mapping is a file in the folder that the launcher names in SPILLWAY_RUN_DIR (called by the
 * pid), else a memfd called "spillway-stats", so that the launcher can finish for a child that died
 * and a viewer can look in. Fields are written with relaxed atomics and no lock; strings are
 * written before `state` becomes RUNNING and never change. Layout changes raise `version`; readers
 * refuse other versions. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/counters.h"
#include "common/devices.h"
#include "pool/placement.h"

enum { SPW_STATS_MAGIC = 0x53505753, SPW_STATS_VERSION = 4 };
enum { SPW_STATS_CALLS = 64, SPW_STATS_NAME = 48, SPW_STATS_PATH = 1024 };
enum { SPW_STATS_THREAD = 16, SPW_STATS_RULE = 72 };
enum { SPW_STATS_HOLDERS = 10, SPW_STATS_LABEL = 160, SPW_STATS_ADVICE = 768 };
enum spw_stats_state { SPW_STATS_EMPTY, SPW_STATS_RUNNING, SPW_STATS_WRITTEN };

/* Under which name this process has written its statistics file. */
enum spw_stats_file { SPW_STATS_FILE_NONE, SPW_STATS_FILE_PLAIN, SPW_STATS_FILE_PID };

/* The last allocation on a device that was answered out of memory. */
struct spw_stats_refusal {
    atomic_flag busy;       /* one writes, others leave it be */
    _Atomic uint64_t count; /* refusals noted; 0: the rest means nothing */
    uint64_t number;        /* of the allocation, among all that were asked of the device, from 1 */
    uint64_t bytes;         /* asked for */
    uint64_t missing_bytes; /* what there was too little; 0: enough was free, but not to be had */
    uint64_t time_ns;       /* CLOCK_MONOTONIC */
    int tid;
    char api[SPW_STATS_NAME]; /* the function that the program called */
    char thread[SPW_STATS_THREAD];
};

/* A call site that held memory when an allocation was refused. */
struct spw_stats_holder {
    uint64_t site; /* its id among the sites of the file; 0: not known */
    uint64_t bytes;
    uint64_t blocks;
    char label[SPW_STATS_LABEL];
};

/* The last out-of-memory report that was written in full. Bytes; what could not be told is 0. */
struct spw_stats_oom {
    atomic_flag busy;       /* one writes, others leave it be */
    _Atomic uint64_t count; /* reports noted; 0: the rest means nothing */
    int device;
    uint64_t bytes;         /* asked for */
    uint64_t missing_bytes; /* as in struct spw_stats_refusal */
    uint64_t site;
    char api[SPW_STATS_NAME];
    char label[SPW_STATS_LABEL];      /* who asked */
    uint64_t total_bytes, free_bytes; /* of the device, as the driver says */
    uint64_t limit_bytes, live_bytes, committed_bytes;
    uint64_t spare_bytes, largest_free_bytes;        /* committed, but under no block */
    uint64_t host_bytes, host_limit_bytes;           /* of the host tier */
    uint64_t host_total_bytes, host_available_bytes; /* of the machine */
    bool usage_known;                                /* the next two */
    uint64_t own_other_bytes; /* this process's beside the pool: context, code, libraries */
    uint64_t other_process_bytes;
    uint64_t holding_sites;
    int holder_count;
    struct spw_stats_holder holders[SPW_STATS_HOLDERS]; /* the largest first */
    char rule[SPW_STATS_ADVICE];                        /* as JSON; "": none */
    uint64_t rule_bytes;
};

struct spw_stats_device {
    struct spw_counters counters;
    _Atomic uint64_t driver_calls[SPW_STATS_CALLS]; /* made by spillway for itself */
    struct spw_stats_refusal refusal;
    struct spw_tally rules[SPW_RULES]; /* of the policy in force */
};

struct spw_stats {
    uint32_t magic;
    uint32_t version;
    uint64_t bytes;    /* sizeof(struct spw_stats) of the writer */
    _Atomic int state; /* enum spw_stats_state */
    _Atomic int file;  /* enum spw_stats_file */
    int pid;
    int device_count; /* visible devices */
    uint64_t start;   /* of the process, in clock ticks since boot: tells a recycled pid */
    bool summary;     /* SPILLWAY_SUMMARY */
    char mode[SPW_STATS_NAME];
    char why[SPW_STATS_PATH];     /* why this mode, in words */
    char process[SPW_STATS_PATH]; /* name of the program, for the summary's first line */
    char path[SPW_STATS_PATH];    /* where the statistics file goes, expanded; "" for none */
    char sites[SPW_STATS_PATH];   /* the file of the call sites (room.h), site/ knows what is in it;
                                     "" when there is none */
    char policy[SPW_STATS_PATH];  /* the file of the policy in force; "" when there is none */
    char rule_names[SPW_RULES][SPW_STATS_RULE];       /* its rules; "" ends the list */
    char call_names[SPW_STATS_CALLS][SPW_STATS_NAME]; /* of driver_calls; "" ends the list */
    struct spw_stats_oom oom;
    struct spw_stats_device devices[SPW_DEVICES_MAX];
};

/* Creates the mapping; on failure a private one, so that the result is never NULL. Once per
 * process, and again after spw_stats_forget (the same address then); the state stays EMPTY until
 * spw_stats_start. The caller serialises it with itself. */
struct spw_stats *spw_stats_create(void);

/* The mapping of this process; NULL before spw_stats_create. */
struct spw_stats *spw_stats_mine(void);

/* Notes that the calling thread's allocation was answered out of memory; the arguments are as in
 * struct spw_stats_refusal. Any thread; when two do so at once one of them is lost. */
void spw_stats_refuse(struct spw_stats_refusal *refusal, const char *api, uint64_t number,
                      uint64_t bytes, uint64_t missing_bytes);

/* In a child after fork: the parent's mapping is not ours any more. What the process still holds of
 * it becomes private memory at the same address, so that stale pointers stay harmless. Only
 * async-signal-safe calls. */
void spw_stats_forget(void);

/* Maps a statistics file that another process created; NULL when it is none of this version.
 * Unmapped by spw_stats_close. */
struct spw_stats *spw_stats_open(const char *path);
void spw_stats_close(struct spw_stats *stats);
