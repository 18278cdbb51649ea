/* The state of spillway in the process, except that of its threads.
 *
 * One struct with a part for each module. The comment of a part names the lock that guards it;
 * atomic members may be read without it. All zero bytes is the state before the start. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backend/backend.h"
#include "callsite/shm.h"
#include "common/counters.h"
#include "common/map.h"
#include "common/options.h"
#include "driver/driver.h"
#include "migrate/migrate.h"
#include "policy/policy.h"
#include "pool/pool.h"
#include "stats/stats.h"
#include "track/spans.h"

enum spw_process_state {
    SPW_PROCESS_IDLE,    /* CUDA is not known to be initialised */
    SPW_PROCESS_RUNNING, /* calls are served */
    SPW_PROCESS_OFF,     /* the driver serves every call: SPILLWAY=off, and children of fork that
                          * are the driver's or have no memory for figures of their own */
    SPW_PROCESS_CHILD,   /* after fork: the driver serves calls until the child initialises CUDA */
};

/* How PyTorch's memory is served. */
enum spw_track_torch_state {
    SPW_TORCH_UNSEEN,   /* it is not known to be loaded */
    SPW_TORCH_TENSORS,  /* the pool serves each tensor (torch/) */
    SPW_TORCH_SEGMENTS, /* PyTorch's cache serves tensors, and the pool its segments */
    SPW_TORCH_ASYNC,    /* PyTorch's backend cudaMallocAsync asks the driver for each tensor */
    SPW_TORCH_FOREIGN,  /* another allocator serves them, such as a pluggable one */
};

/* PyTorch's allocator. */
struct spw_track_torch {
    _Atomic int state; /* enum spw_track_torch_state; stored after the rest */
    const char *why;   /* the reason for segments against the mode; NULL: the mode asks for them */
    char version[32];
};

/* The reason for closing a pool. No work is pending on the device. */
enum spw_closing {
    SPW_CLOSING_ORDERLY,       /* its contexts still exist */
    SPW_CLOSING_CONTEXTS_GONE, /* its contexts and their events are gone: only memory is released */
    SPW_CLOSING_FORKED,        /* a child's copy: the driver does not work here */
};

/* One visible device. */
struct spw_device {
    int ordinal;
    CUdevice handle;
    struct spw_counters *counters;     /* in the statistics, as refusal, rules, oom */
    struct spw_stats_refusal *refusal; /* the last request that was refused */
    struct spw_account *rules;         /* by rule of the policy */
    uint64_t total_bytes;              /* of its memory; 0 until a pool is opened */
    struct spw_stats_oom *oom;         /* the out-of-memory report; one for all devices */
    struct spw_charges *charges;       /* by call site; NULL: not recorded */
    struct spw_charges *pinned;        /* the same of page-locked memory */
    /* The driver's default memory pool, NULL when it has none; valid once it was asked for: see
     * spw_track_device_default_pool. */
    _Atomic(CUmemoryPool) default_pool;
    _Atomic bool default_pool_asked;
    _Atomic(CUmemoryPool) current_pool; /* the pool of cuMemAllocAsync; NULL: default */
    /* The pool, NULL until first used or if `failed`; its backend; its host tier, NULL when nothing
     * spills. They are set and cleared together under spw_locks.process. A pointer that was read is
     * valid until the lock or the lease ends under which it was read. */
    _Atomic(struct spw_pool *) pool;
    _Atomic(struct spw_backend *) backend;
    _Atomic(struct spw_migrate *) tier;
    _Atomic uint32_t closing; /* pools of the device that are closed and not destroyed yet */
    _Atomic bool failed;      /* no pool could be made: the driver serves calls */
    /* The free bytes that cuMemGetInfo last reported, until a request of this size; 0: none. */
    _Atomic uint64_t told_free;
    /* CUmemAccess_flags of the other devices, by ordinal, also for a pool that is opened later.
     * pool_access: those of the memory pool (track/access.h), guarded by spw_locks.process. */
    _Atomic uint8_t access[SPW_DEVICES_MAX];
    uint8_t pool_access[SPW_DEVICES_MAX];
};

/* The contexts that were seen: struct known of contexts.c, by context. Guarded by
 * spw_locks.contexts. */
struct spw_contexts {
    struct spw_map entries;
};

/* The streams that the program created: struct spw_stream_info by handle. Guarded by
 * spw_locks.streams. */
struct spw_streams {
    struct spw_map created;
    /* Rises when a stream or context is forgotten: the entries that threads keep are stale then. */
    _Atomic uint64_t generation;
    _Atomic uint64_t numbered; /* streams numbered here, since an old driver does not */
};

enum { SPW_CAPTURES = 256 };

/* The open captures. One beyond SPW_CAPTURES stays counted for good, which only costs a driver call
 * for each allocation. Guarded by spw_locks.captures. */
struct spw_captures {
    struct spw_capture {
        uint64_t id;      /* of the stream */
        uintptr_t thread; /* that began it */
        CUstreamCaptureMode mode;
    } open[SPW_CAPTURES];
    size_t count;
};

/* CUDA graphs that may name blocks (track/graph.h). Guarded by spw_locks.graphs. */
struct spw_graphs {
    struct spw_map captured;    /* by handle: captured, and neither made executable nor destroyed */
    struct spw_map executables; /* by handle: struct spw_graph_uses */
    struct spw_map named;       /* struct graph_count by address of a block */
    size_t unreadable;          /* executable graphs that may name any block */
};

/* Allocations of the real driver: struct spw_ledger_entry by address. Guarded by spw_locks.ledger.
 */
struct spw_ledger {
    struct spw_map entries;
};

/* The program's own physical memory. Guarded by spw_locks.mappings. */
struct spw_mappings {
    struct spw_map pieces;    /* struct spw_piece by handle */
    struct spw_map mappings;  /* by address */
    struct spw_spans spilled; /* where spilled pieces are mapped */
    _Atomic size_t spilled_count;
};

enum {
    SPW_LAYOUTS = 1 << 14,      /* kernels known at most, in all generations */
    SPW_LAYOUT_SIZES = 1 << 18, /* their parameters */
};

/* The parameters of one kernel. */
struct spw_layout {
    _Atomic uintptr_t function; /* 0: the entry is free; set last */
    uint32_t generation;
    uint32_t first; /* index of the first size */
    uint32_t count;
    bool known;  /* the driver gave the layout */
    bool direct; /* its name shows no reading of addresses from memory */
    _Atomic bool launched;
};

/* The parameter layouts of kernels. Guarded by spw_locks.layouts; both arrays only grow, so that a
 * layout is read without the lock. */
struct spw_layouts {
    _Atomic uint32_t generation; /* rises when code is unloaded: older layouts are not found */
    struct spw_layout layouts[SPW_LAYOUTS];
    uint16_t sizes[SPW_LAYOUT_SIZES];
    uint32_t used;
};

/* Memory that holds addresses. Guarded by spw_locks.indirect. */
struct spw_indirect {
    struct spw_spans holders; /* blocks of ours that hold addresses */
    struct spw_spans mapped;  /* page-locked and managed memory */
    _Atomic size_t holder_count;
    _Atomic uint64_t mapped_begin; /* all mapped memory lies in between, now and before */
    _Atomic uint64_t mapped_end;   /* 0: there was none */
    _Atomic bool everywhere;       /* addresses are where every launch may find them */
};

enum {
    SPW_TENSOR_MAPS = 4096,
    SPW_TENSOR_MAP_BYTES = 128,
    SPW_TENSOR_MAP_ALIGN = 64, /* of CUtensorMap */
    SPW_TENSOR_MAP_WORDS = SPW_TENSOR_MAP_BYTES / sizeof(uint64_t)
};

struct spw_tensor_map {
    uint64_t words[SPW_TENSOR_MAP_WORDS];
    uint64_t address;
    uint16_t next; /* index + 1 of the next map with the same hash; 0: none */
};

/* The youngest tensor maps, in a ring. Guarded by spw_locks.tensor_maps. */
struct spw_tensor_maps {
    _Atomic bool any;
    uint32_t added; /* in all */
    struct spw_tensor_map maps[SPW_TENSOR_MAPS];
    uint16_t first[SPW_TENSOR_MAPS]; /* by hash, as spw_tensor_map.next */
};

struct spw_policy_memo;

/* The policy in force. Written once, before `policy` is set; only atomic members change later. */
struct spw_policy_state {
    _Atomic(struct spw_policy *) policy; /* NULL: none */
    _Atomic bool was_read;               /* the file was read, or could not be */
    atomic_flag claimed;                 /* by the thread that puts it into force */
    char file[4096];                     /* its path; empty: none */
    char process[256];                   /* name of this process, for the rules */
    int64_t rank;
    uint8_t regions[SPW_ACCOUNTS]; /* number of each rule's region; 0: none */
    uint32_t region_count;
    bool hosts;                    /* a rule may place blocks on the host */
    bool counts;                   /* a rule asks for the number of an allocation */
    bool counts_in_steps;          /* or for its number in a step */
    _Atomic uint32_t step;         /* steps that the program marked so far */
    struct spw_policy_memo *memos; /* by call site */
    _Atomic uint64_t unmet_told;   /* bits of the rules that were reported as not followed */
    _Atomic uint64_t beyond_told;  /* bits of the rules whose limit was reported */
    _Atomic unsigned lines;        /* written about call sites */
};

/* The call sites whose out-of-memory report was written in full, by one process. No lock. */
struct spw_oom_reports {
    _Atomic int pid;
    _Atomic uint64_t sites[SPW_CALLSITE_MOST / 64 + 1]; /* bits */
};

struct spw_callsite_shm;

struct spw_process {
    _Atomic(struct spw_driver *) driver; /* NULL until it is loaded */
    _Atomic int state;                   /* enum spw_process_state */
    _Atomic int switched;                /* the option SPILLWAY: 0 not read yet, 1 on, 2 off */
    bool at_fork;                        /* the fork handlers are registered */
    bool at_exit;                        /* the exit handler is registered */
    /* The process is ending, and the driver may be partly gone: blocks are still served, but
     * nothing is torn down with a context. */
    _Atomic bool leaving;
    enum spw_mode mode;
    /* The mode is observe, invariants are checked, or a policy is in force. An allocation asks for
     * each of them only if this is true. */
    _Atomic bool unusual;
    bool check;      /* SPILLWAY_CHECK: check the invariants of pools */
    bool free_waits; /* SPILLWAY_FREE_WAITS: cuMemFree waits for the device */
    struct spw_track_torch torch;
    int device_count;
    struct spw_device devices[SPW_DEVICES_MAX];

    /* The tables of the modules. */
    struct spw_contexts contexts;
    struct spw_streams streams;
    struct spw_captures captures;
    struct spw_graphs graphs;
    struct spw_ledger ledger;
    struct spw_mappings mappings;
    struct spw_layouts layouts;
    struct spw_indirect indirect;
    struct spw_tensor_maps tensor_maps;
    struct spw_policy_state policy;
    struct spw_oom_reports oom_reports;

    struct spw_enabled_peer *enabled_peers; /* track/access.h; guarded by spw_locks.process */

    /* Blocks of all devices that get their memory when the device is first given work, and devices
     * that lost memory in a move. */
    _Atomic uint64_t lazies;

    /* Above 0: copies and fills of the program are looked at (parts.h). Counts chunks of the host
     * and mappings of the program's own memory there, unless `whole_copies`; and 1 for good since
     * two devices are used. */
    _Atomic uint64_t looked_at;
    _Atomic bool uses_several; /* two devices have had a context or a pool; counted in looked_at */
    bool whole_copies;         /* SPILLWAY_SPLIT_COPIES=off */
    bool graphs_stay;          /* SPILLWAY_GRAPHS=stay */

    /* Set at the start, before calls are served, and in a child after fork. */
    struct spw_stats *stats;
    struct spw_callsite_shm *sites; /* NULL: call sites are not recorded */
};

extern struct spw_process spw_process;
