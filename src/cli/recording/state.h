/* The state of a program's memory, from the events of its recording: live blocks, sums by device
 * and call site, and the peak of each device. One thread.
 *
 * The size of the file bounds the memory of this state: a live block takes about 100 bytes here,
 * and its allocation takes at least 5 bytes in the file. */
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
    uint32_t site;  /* as spw_cli_recorded_sites_number has it */
    uint32_t thread;
    int device;
    enum spw_record_source source;
    uint64_t host_bytes; /* placed on the host when it was allocated */
    unsigned rule;
};

/* The figures of a call site on a device. */
struct spw_cli_held {
    uint64_t live, total, allocs, frees;
    uint64_t peak;    /* the site's own peak */
    uint64_t at_peak; /* bytes at the device's peak; read by spw_cli_state_at_peak */
    uint64_t epoch;   /* of the device when `at_peak` was saved */
};

/* The figures of a device. */
struct spw_cli_device {
    uint64_t live, live_peak, peak_time;
    uint64_t allocs, frees;           /* all */
    uint64_t pool_allocs, pool_frees; /* allocations from the pool, as in the statistics */
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
    bool out_of_memory;     /* of this command, not of the program */
    bool again;             /* the call sites are known from an earlier reading */
    char about[5][SPW_RECORD_TEXT + 1];
};

/* False without memory. */
bool spw_cli_state_init(struct spw_cli_state *state);
void spw_cli_state_fini(struct spw_cli_state *state);

/* Removes everything except the call sites. Then the events can be taken again. */
void spw_cli_state_restart(struct spw_cli_state *state);

/* Takes the next event. If it frees a block, *ret_is_freed is true and *ret_freed is the block. */
void spw_cli_state_take(struct spw_cli_state *state, const struct spw_cli_event *event,
                        struct spw_cli_block *ret_freed, bool *ret_is_freed);

/* The bytes that a site held at its device's peak. */
uint64_t spw_cli_state_at_peak(const struct spw_cli_device *device, uint32_t site);

/* The block at an address; NULL when none is live. */
struct spw_cli_block *spw_cli_state_block(const struct spw_cli_state *state, int device,
                                          uint64_t address);

/* The number of devices, up to the last one with an allocation. */
int spw_cli_state_devices(const struct spw_cli_state *state);
