/* Detects memory that grows from step to step.
 *
 * The first two steps are ignored. The other steps are divided into three parts, and the minimum of
 * live memory in each part is determined. The minimum does not include memory that lives only
 * within a step, even if steps differ in size. Memory counts as growing if the minimum rises from
 * the first part to the second and again from the second to the third. Memory that is filled once,
 * such as a cache, causes only one rise. One thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/recording/state.h"

enum {
    SPW_CLI_GROWTH_WARM_UP = 2, /* number of first steps that are ignored */
    SPW_CLI_GROWTH_STEPS = 8,   /* least number of steps that a recording must have */
};

struct spw_cli_growth;

/* `sites` must be greater than the highest number of a call site. Returns NULL if memory runs
 * out. */
struct spw_cli_growth *spw_cli_growth_create(size_t steps, uint32_t sites,
                                             const struct spw_cli_state *state);
void spw_cli_growth_free(struct spw_cli_growth *growth);

/* _step is called at the end of step `number`, which counts from 1. _change is called when the live
 * memory of a site on a device has changed. */
void spw_cli_growth_step(struct spw_cli_growth *growth, const struct spw_cli_state *state,
                         size_t number);
void spw_cli_growth_change(struct spw_cli_growth *growth, const struct spw_cli_state *state,
                           int device, uint32_t site);

/* Return the growth of a device, or of a call site on a device, in bytes per step, rounded. The
 * result is 0 if nothing grows, or if there are fewer than SPW_CLI_GROWTH_STEPS steps. */
uint64_t spw_cli_growth_of_device(const struct spw_cli_growth *growth, int device);
uint64_t spw_cli_growth_of_site(const struct spw_cli_growth *growth, int device, uint32_t site);
