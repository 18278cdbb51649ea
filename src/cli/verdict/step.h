/* Ranges of the times of steps, from the estimates of the simulated driver. One thread. */
#pragma once

#include <cjson/cJSON.h>

#include "cli/verdict/sim_result.h"
#include "gpu/profile.h"

/* A time in nanoseconds, or a factor, between two bounds. */
struct spw_cli_range {
    double least, most; /* both 0: not known */
};

/* Returns the time of a step on a card with ample memory, from a run on the card `from`. */
struct spw_cli_range spw_cli_step_time(const struct spw_cli_sim_device *device,
                                       const struct spw_gpu_profile *from,
                                       const struct spw_gpu_profile *card);

/* Returns the factor by which a step of that time gets longer if it moves this number of bytes to
 * the host and back. */
struct spw_cli_range spw_cli_step_slowdown(struct spw_cli_range step,
                                           const struct spw_gpu_profile *card, uint64_t out_bytes,
                                           uint64_t in_bytes);

/* Writes a range as text: "71 to 110 ms", "1.2 to 2.8 times as long". The text is valid until the
 * next call of the same function. */
const char *spw_cli_step_time_text(struct spw_cli_range step);
const char *spw_cli_step_slowdown_text(struct spw_cli_range slowdown);

/* Adds a range to a JSON object, as a list of two numbers, in another unit. */
void spw_cli_step_json(cJSON *object, const char *name, struct spw_cli_range range, double unit);
