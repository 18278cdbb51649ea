#include "cli/verdict/step.h"

#include <stdio.h>

#include "gpu/rate.h"

/* The estimate may be too long or too short by these factors. 27 of 28 published times of steps
 * were within them (tests/fit/data/times). */
#define TOO_LONG  1.3
#define TOO_SHORT 1.3

/* Upper bound of the delay of a step by moves, as a multiple of the time of the copies. On an H100,
 * the delay was 208 ms, and all copies of the step took 81 ms (docs/dev/gpu.md). */
#define MOVES_MOST 2.6

static double most_of(double a, double b)
{
    return a > b ? a : b;
}

struct spw_cli_range spw_cli_step_time(const struct spw_cli_sim_device *device,
                                       const struct spw_gpu_profile *from,
                                       const struct spw_gpu_profile *card)
{
    const struct spw_cli_sim_step *step = &device->step;
    double busy = (double)step->busy_ns, host = (double)step->host_ns, other = busy, time;
    double gaps = (double)step->ns - most_of(busy, host);

    if (step->launches == 0) {
        return (struct spw_cli_range){0, 0};
    }
    for (int type = 0; type < SPW_GPU_TYPES; type++) {
        double computing = (double)step->computing_ns[type];

        other -= computing;
        busy += computing * (spw_gpu_rate(from, (enum spw_gpu_type)type) /
                                 spw_gpu_rate(card, (enum spw_gpu_type)type) -
                             1);
    }
    other = other < (double)step->moving_ns ? other : (double)step->moving_ns;
    busy += other * (spw_gpu_memory_rate(from) / spw_gpu_memory_rate(card) - 1);
    time = most_of(most_of(busy, host) + gaps, 1);
    return (struct spw_cli_range){time / TOO_LONG, time * TOO_SHORT};
}

struct spw_cli_range spw_cli_step_slowdown(struct spw_cli_range step,
                                           const struct spw_gpu_profile *card, uint64_t out_bytes,
                                           uint64_t in_bytes)
{
    struct spw_gpu_link link = spw_gpu_link_reached(card);
    double longer = spw_gpu_link_ns(link, in_bytes, out_bytes);
    double both = spw_gpu_link_ns(link, in_bytes, 0) + spw_gpu_link_ns(link, 0, out_bytes);

    if (step.most <= 0 || both <= 0) {
        return (struct spw_cli_range){0, 0};
    }
    return (struct spw_cli_range){most_of(1, longer / step.most),
                                  1 + MOVES_MOST * both / step.least};
}

const char *spw_cli_step_time_text(struct spw_cli_range step)
{
    static char text[64];
    double unit = step.most >= 1e10 ? 1e9 : step.most >= 1e6 ? 1e6 : 1e3;

    (void)snprintf(text, sizeof(text), "%.*f to %.*f %s", step.least / unit < 9.95,
                   step.least / unit, step.most / unit < 9.95, step.most / unit,
                   step.most >= 1e10  ? "s"
                   : step.most >= 1e6 ? "ms"
                                      : "us");
    return text;
}

const char *spw_cli_step_slowdown_text(struct spw_cli_range slowdown)
{
    static char text[64];

    (void)snprintf(text, sizeof(text), "%.2g to %.2g times as long", slowdown.least, slowdown.most);
    return text;
}

void spw_cli_step_json(cJSON *object, const char *name, struct spw_cli_range range, double unit)
{
    cJSON *list = cJSON_AddArrayToObject(object, name);

    cJSON_AddItemToArray(list, cJSON_CreateNumber(range.least * unit));
    cJSON_AddItemToArray(list, cJSON_CreateNumber(range.most * unit));
}
