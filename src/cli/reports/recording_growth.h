/* Memory that grows step by step.
 *
 * The steps after the first two are cut into three parts. The least that was live in each part is
 * free of what comes and goes within a step, also where steps differ in size. Memory grows if that
 * rises from the first part to the second and from the second to the third: what is filled once,
 * as a cache is, rises only once. One thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/recording/state.h"

enum {
    SPW_CLI_GROWTH_WARM_UP = 2, /* steps */
    SPW_CLI_GROWTH_STEPS = 8,   /* that a recording must have */
};

struct spw_cli_growth;

/* NULL without memory. `sites`: more than the highest number of a call site. */
struct spw_cli_growth *spw_cli_growth_create(size_t steps, uint32_t sites,
                                             const struct spw_cli_state *state);
void spw_cli_growth_free(struct spw_cli_growth *growth);

/* Step `number`, from 1 on, ends. */
void spw_cli_growth_step(struct spw_cli_growth *growth, const struct spw_cli_state *state,
                         size_t number);

/* What a site has live on a device has changed. */
void spw_cli_growth_change(struct spw_cli_growth *growth, const struct spw_cli_state *state,
                           int device, uint32_t site);

/* Bytes by which a device, or a call site on it, grows from step to step, rounded; 0: it does not,
 * or there are too few steps. */
uint64_t spw_cli_growth_of_device(const struct spw_cli_growth *growth, int device);
uint64_t spw_cli_growth_of_site(const struct spw_cli_growth *growth, int device, uint32_t site);
