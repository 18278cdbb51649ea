/* Computes the live bytes of a recorded run for other decisions: memory on the host, and recomputed
 * modules. The run is cut into stretches. A cut is the end of a module's pass, or the moment when
 * the backward pass first needs the memory of the pass again. In one stretch, a decision changes
 * the live bytes by a constant. So the timeline stores only the highest bytes of each stretch. One
 * thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/advise/history.h"

/* The peaks of device and host memory, and their moments. A moment is the index of a change. If a
 * pass runs again at the moment, it is change_count plus the index of the pass. */
struct spw_cli_advise_extent {
    uint64_t device_bytes, host_bytes;
    size_t device_moment, host_moment;
};

struct spw_cli_advise_timeline {
    const struct spw_cli_advise_history *history;
    struct spw_cli_advise_cut *cuts; /* sorted by their place in the run */
    size_t cut_count;
    struct spw_cli_advise_stretch *stretches; /* one more than cuts */
    int64_t *saved_device, *saved_host;       /* by pass: bytes that it saves for backward */
};

/* Makes the timeline of a run. `host_bytes` gives, for each kind, the bytes of a block that are on
 * the host. NULL: no memory is on the host. Returns false if memory runs out. The caller calls
 * _fini even then. */
bool spw_cli_advise_timeline_make(const struct spw_cli_advise_history *history,
                                  const uint64_t *host_bytes,
                                  struct spw_cli_advise_timeline *ret_timeline);
void spw_cli_advise_timeline_fini(struct spw_cli_advise_timeline *timeline);

/* Returns the peaks if some modules are recomputed. `again` has an element for each module. NULL:
 * no module is recomputed. For modules in `maybe` (NULL: none), the freed memory counts, but not
 * the memory of the second pass. The peaks are then lower bounds. */
struct spw_cli_advise_extent
spw_cli_advise_timeline_extent(const struct spw_cli_advise_timeline *timeline, const bool *again,
                               const bool *maybe);

/* Returns the peak on the device. Writes the bytes that each module would free at the moment of the
 * peak, unless the output is NULL. `timeline` is a struct spw_cli_advise_timeline; its type is that
 * of a callback of recompute.h. */
uint64_t spw_cli_advise_timeline_peak(const void *timeline, const bool *again, const bool *maybe,
                                      uint64_t *ret_gains);

/* Makes a timeline, and computes one extent with it. Returns false if memory runs out. */
bool spw_cli_advise_timeline_extent_of(const struct spw_cli_advise_history *history,
                                       const uint64_t *host_bytes, const bool *again,
                                       struct spw_cli_advise_extent *ret_extent);

/* Writes the bytes that each kind holds at a moment, if the modules `again` are recomputed and no
 * memory is on the host. */
void spw_cli_advise_timeline_at(const struct spw_cli_advise_history *history, const bool *again,
                                size_t moment, uint64_t *ret_bytes);
