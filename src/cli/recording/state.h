/* The state of a program's memory, computed from the events of its recording: the live blocks, the
 * sums by device and call site, and the peak of each device. One thread.
 *
 * The size of the recording limits the memory that this state uses. A live block takes about 100
 * bytes of it, and the block's allocation takes at least 5 bytes in the recording. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/recording/events.h"
#include "cli/recording/marks.h"
#include "cli/recording/sites.h"
#include "common/map.h"

/* A live allocation. */
struct spw_cli_block {
    uint64_t address, bytes; /* bytes: as requested */
    uint64_t counted;        /* live bytes: `bytes` rounded up to 512, or 0 */
    uint64_t time, stream;
    uint64_t event; /* number of the allocation's event, from 1 */
    uint32_t site;  /* as returned by spw_cli_recorded_sites_number */
    uint32_t thread;
    int device;
    enum spw_record_source source;
    uint64_t host_bytes; /* bytes placed on the host at the allocation */
    unsigned rule;
};

/* The figures of a call site on a device. */
struct spw_cli_held {
    uint64_t live, total, allocs, frees;
    uint64_t peak;    /* the site's own peak */
    uint64_t at_peak; /* bytes at the device's peak; read by spw_cli_state_at_peak */
    uint64_t epoch;   /* the device's epoch when `at_peak` was saved */
};

/* The figures of a device. */
struct spw_cli_device {
    uint64_t live, live_peak, peak_time;
    uint64_t allocs, frees;           /* all */
    uint64_t pool_allocs, pool_frees; /* only allocations from the pool, as in the statistics */
    uint64_t peak_event;              /* number of the event of the peak */
    uint64_t epoch;                   /* number of new peaks so far */
    uint64_t moves, to_host, to_device, held_back_ns;
    uint64_t ooms, steps;
    uint64_t gauges[SPW_RECORD_GAUGE_COUNT];
    uint64_t committed_peak, host_peak;
    struct spw_cli_event first_oom;
    struct spw_cli_held *held; /* by site; NULL: the device was not used */
    uint32_t held_count;
};

struct spw_cli_state {
    struct spw_cli_recorded_sites *sites;
    struct spw_map live; /* of struct spw_cli_block */
    struct spw_cli_device devices[SPW_DEVICES_MAX];
    struct spw_cli_marks marks;
    uint64_t events, steps;
    uint64_t time;          /* of the last event */
    uint64_t unknown_frees; /* of blocks that are not in the recording */
    bool out_of_memory;     /* this command, not the program, ran out of memory */
    bool again;             /* the call sites are known, because the recording was read before */
    char about[SPW_RECORD_ABOUT_COUNT][SPW_RECORD_TEXT + 1]; /* "": not known */
};

/* Returns false if memory runs out. */
bool spw_cli_state_init(struct spw_cli_state *state);
void spw_cli_state_fini(struct spw_cli_state *state);

/* Resets everything except the call sites. Afterwards the events can be taken again from the
 * first. */
void spw_cli_state_restart(struct spw_cli_state *state);

/* Takes the next event. If the event frees a block, sets *ret_is_freed to true and copies the block
 * to *ret_freed. */
void spw_cli_state_take(struct spw_cli_state *state, const struct spw_cli_event *event,
                        struct spw_cli_block *ret_freed, bool *ret_is_freed);

/* Returns the bytes that a site held at the peak of its device. */
uint64_t spw_cli_state_at_peak(const struct spw_cli_device *device, uint32_t site);

/* Returns the live block that starts at the address, or NULL if there is none. */
struct spw_cli_block *spw_cli_state_block(const struct spw_cli_state *state, int device,
                                          uint64_t address);

/* Returns the number of devices up to the last one that has an allocation. */
int spw_cli_state_devices(const struct spw_cli_state *state);
