/* The live bytes of a recorded run, as they would be with other decisions: with memory on the host,
 * and with modules that are recomputed. The run is cut into stretches where a pass of a module ends
 * and where the backward pass first needs its memory again. Between two cuts, a decision changes
 * the live bytes by a constant, so that the highest bytes of each stretch are all that a question
 * needs. One thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/advise/history.h"

/* The peaks of device and host memory, and their moments. A moment is the
 * index of a change, or change_count plus the index of a pass, which runs again at this moment. */
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
 * no module is recomputed. For modules in `maybe`, only the memory counts that recomputing
 * frees, so that the peaks are lower bounds. NULL: there are none. */
struct spw_cli_advise_extent
spw_cli_advise_timeline_extent(const struct spw_cli_advise_timeline *timeline, const bool *again,
                               const bool *maybe);

/* Returns the peak on the device, and writes the bytes that each module would free at its moment.
 * NULL: they are not needed. `timeline` is a struct spw_cli_advise_timeline, as the choice of
 * modules asks for it (recompute.h). */
uint64_t spw_cli_advise_timeline_peak(const void *timeline, const bool *again, const bool *maybe,
                                      uint64_t *ret_gains);

/* Does all of that for one question. Returns false if memory runs out. */
bool spw_cli_advise_timeline_extent_of(const struct spw_cli_advise_history *history,
                                       const uint64_t *host_bytes, const bool *again,
                                       struct spw_cli_advise_extent *ret_extent);

/* Writes the bytes that each kind holds at a moment, if the modules `again` are recomputed and no
 * memory is on the host. */
void spw_cli_advise_timeline_at(const struct spw_cli_advise_history *history, const bool *again,
                                size_t moment, uint64_t *ret_bytes);
