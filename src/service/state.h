/* The state of pauses and of shared devices. All zero bytes is the state before the first pause or
 * request.
 *
 * The comment of a part names its lock; atomic members may be used without it. It lives as
 * long as the process; in a child after fork spw_service_control_forget and
 * spw_service_share_forget reset it. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "callsite/shm.h"
#include "device/state.h"
#include "migrate/host/swap_file.h"
#include "stats/stats.h"

enum { SPW_PART_SITES = SPW_CALLSITE_MOST + 1, SPW_PART_WORDS = (SPW_PART_SITES + 63) / 64 };

/* The blocks of a part. The filter points into this struct, so it must not be copied. */
struct spw_part_blocks {
    struct spw_block_filter filter;
    uint64_t sites[SPW_PART_WORDS];
};

/* If more parts are paused, the pause ends only when all memory comes back. */
enum { SPW_PAUSED_MOST = 32 };

/* The requests of other processes. The members that are not atomic belong to the thread that
 * answers them. */
struct spw_service_control {
    _Atomic bool started;
    _Atomic bool arrived; /* the program has reached the pause, which ends then if it is on
                           * demand */
    enum spw_control_state state_before; /* before the program was held */
    uint64_t held_ns;                    /* time of the latest request to hold it */
};

/* The pause under way. Guarded by spw_locks.pausing, which threads take in the order of their
 * tickets. A mutex alone is not fair: a program that pauses itself again and again would keep a
 * command of `spillway` waiting for minutes. */
struct spw_service_pause {
    _Atomic unsigned next_ticket, served_ticket;
    int cancel_before;         /* state of cancellation that the thread had before its turn */
    bool holding;              /* the program is held. Only the thread that holds it uses this */
    struct spw_swap_file file; /* without a buffer: there is none */
    struct spw_part_blocks blocks; /* the blocks that move */
};

/* The paused parts of the memory. Guarded by spw_locks.parts. */
struct spw_service_paused {
    size_t count;
    bool more; /* more parts are paused than are in the list */
    struct {
        enum spw_control_part kind;
        char name[SPW_STATS_PART];
    } items[SPW_PAUSED_MOST];
};

enum { SPW_SHARE_MEMBERS = 63 };

/* A device that is shared with other processes. */
struct spw_service_share {
    _Atomic bool joined;
    struct spw_share_file *file;   /* share.c */
    struct spw_share_member *mine; /* NULL: it could not join */
    struct spw_device *device;
    /* For each process that gave nothing: when it is asked again, and the owner of its entry then,
     * since another process may take the entry over. */
    _Atomic uint64_t alone_until[SPW_SHARE_MEMBERS], alone_owner[SPW_SHARE_MEMBERS];
    _Atomic uint64_t besides;    /* bytes of this process beyond the counted ones, by NVML */
    _Atomic uint64_t besides_ns; /* time when NVML was asked */
};

struct spw_service {
    struct spw_service_control control;
    struct spw_service_pause pause;
    struct spw_service_paused paused;
    struct spw_service_share shares[SPW_DEVICES_MAX];
    atomic_flag bad_share; /* the line was written that SPILLWAY_SHARE is no name */
};

extern struct spw_service spw_service;
