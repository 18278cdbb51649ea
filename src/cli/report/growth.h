/* Memory that grows step by step.
 *
 * The steps after the first two are divided into three parts. The least live memory of each part
 * excludes memory that lives within a step, even if steps differ in size. Memory grows if the least
 * rises from the first part to the second and from the second to the third. Memory that is filled
 * once, such as a cache, rises only once. One thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/recording/state.h"

enum {
    SPW_CLI_GROWTH_WARM_UP = 2, /* first steps, which are left out */
    SPW_CLI_GROWTH_STEPS = 8,   /* steps that a recording must have */
};

struct spw_cli_growth;

/* NULL without memory. `sites`: more than the highest number of a call site. */
struct spw_cli_growth *spw_cli_growth_create(size_t steps, uint32_t sites,
                                             const struct spw_cli_state *state);
void spw_cli_growth_free(struct spw_cli_growth *growth);

/* _step takes the end of step `number` (from 1 on). _change takes a change of a site's live memory
 * on a device. */
void spw_cli_growth_step(struct spw_cli_growth *growth, const struct spw_cli_state *state,
                         size_t number);
void spw_cli_growth_change(struct spw_cli_growth *growth, const struct spw_cli_state *state,
                           int device, uint32_t site);

/* The growth of a device, or of a call site on it, in bytes a step, rounded; 0: no growth, or fewer
 * than SPW_CLI_GROWTH_STEPS steps. */
uint64_t spw_cli_growth_of_device(const struct spw_cli_growth *growth, int device);
uint64_t spw_cli_growth_of_site(const struct spw_cli_growth *growth, int device, uint32_t site);
