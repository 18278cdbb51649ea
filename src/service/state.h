/* The state of pauses and of shared devices. All zero bytes is the state before the first pause or
 * request.
 *
 * The comment of a part names its lock. Atomic members may be used without the lock. The state
 * lives as long as the process. In a child after fork, spw_service_control_forget and
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

/* The most paused parts in the list. If more parts are paused, the pause ends only when all memory
 * is brought back. */
enum { SPW_PAUSED_MOST = 32 };

/* The requests of other processes. Only the thread that answers requests uses the members that are
 * not atomic. */
struct spw_service_control {
    _Atomic bool started;
    _Atomic bool arrived; /* the program has reached the pause; a pause on demand ends then */
    enum spw_control_state state_before; /* the state before the program was held */
    uint64_t held_ns;                    /* time of the latest request to hold the program */
};

/* The current pause. Guarded by spw_locks.pausing, which threads take in the order of their
 * tickets. A mutex without tickets is not fair: a program that pauses itself repeatedly could keep
 * a command of `spillway` waiting for minutes. */
struct spw_service_pause {
    _Atomic unsigned next_ticket, served_ticket;
    int cancel_before;             /* the cancellation state of the thread before it got its turn */
    bool holding;                  /* the program is held; used only by the thread that holds it */
    struct spw_swap_file file;     /* without a buffer, there is no file */
    struct spw_part_blocks blocks; /* the blocks that the pause moves */
};

/* The paused parts of the memory. Guarded by spw_locks.parts. */
struct spw_service_paused {
    size_t count;
    bool more; /* more parts are paused than the list can hold */
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
    struct spw_share_member *mine; /* NULL: this process could not join */
    struct spw_device *device;
    /* For each process that gave no memory: the time when it is asked again, and the owner of its
     * entry at that time. The owner is recorded because another process may take over the entry. */
    _Atomic uint64_t alone_until[SPW_SHARE_MEMBERS], alone_owner[SPW_SHARE_MEMBERS];
    _Atomic uint64_t besides;    /* bytes of this process that spillway does not count, by NVML */
    _Atomic uint64_t besides_ns; /* time when NVML was asked */
};

struct spw_service {
    struct spw_service_control control;
    struct spw_service_pause pause;
    struct spw_service_paused paused;
    struct spw_service_share shares[SPW_DEVICES_MAX];
    atomic_flag bad_share; /* the message was written that SPILLWAY_SHARE is not a valid name */
};

extern struct spw_service spw_service;
