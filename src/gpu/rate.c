#include "gpu/rate.h"

#include <stdbool.h>
#include <string.h>

/* Memory with so wide a bus consists of stacks (HBM). Kernels reach a smaller part of its
 * bandwidth: 2912 of 3352 GB/s on an H100, on average of reads, writes and copies
 * (docs/dev/gpu.md). */
#define STACKED_BITS 2048
#define STACKED_PART 0.87

/* In thousandths. */
#define SPW_GPU_SUSTAINED_DEFAULT 800
#define LINK_DEFAULT              870

static const struct {
    int major, minor;
    int operations[SPW_GPU_TYPES];
} rates[] = {
#define SPW_GPU_RATE(major, minor, ...) {major, minor, {__VA_ARGS__}},
#define SPW_GPU_SUSTAINED(model, permille)
#define SPW_GPU_LINK(model, in_mbps, out_mbps)
#include "gpu/rates.def"
#undef SPW_GPU_RATE
#undef SPW_GPU_SUSTAINED
#undef SPW_GPU_LINK
};

static const struct {
    const char *model;
    int permille;
} sustained[] = {
#define SPW_GPU_RATE(major, minor, ...)
#define SPW_GPU_SUSTAINED(model, permille) {model, permille},
#define SPW_GPU_LINK(model, in_mbps, out_mbps)
#include "gpu/rates.def"
#undef SPW_GPU_RATE
#undef SPW_GPU_SUSTAINED
#undef SPW_GPU_LINK
};

static const struct {
    const char *model;
    int in_mbps, out_mbps;
} links[] = {
#define SPW_GPU_RATE(major, minor, ...)
#define SPW_GPU_SUSTAINED(model, permille)
#define SPW_GPU_LINK(model, in_mbps, out_mbps) {model, in_mbps, out_mbps},
#include "gpu/rates.def"
#undef SPW_GPU_RATE
#undef SPW_GPU_SUSTAINED
#undef SPW_GPU_LINK
};

static int operations_a_clock(const struct spw_gpu_profile *profile, enum spw_gpu_type type)
{
    for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++) {
        if (rates[i].major == profile->major && rates[i].minor == profile->minor) {
            return rates[i].operations[type];
        }
    }
    return rates[0].operations[type];
}

static int sustained_permille(const struct spw_gpu_profile *profile)
{
    for (size_t i = 0; i < sizeof(sustained) / sizeof(sustained[0]); i++) {
        if (strncmp(profile->id, sustained[i].model, strlen(sustained[i].model)) == 0) {
            return sustained[i].permille;
        }
    }
    return SPW_GPU_SUSTAINED_DEFAULT;
}

/* The part of the rate that a GeForce or TITAN card has. A GTX of Turing has no tensor cores. */
static double part_of_rate(const struct spw_gpu_profile *profile, enum spw_gpu_type type)
{
    bool tensor = operations_a_clock(profile, type) > operations_a_clock(profile, SPW_GPU_F32);

    if (!tensor || type < SPW_GPU_TF32 || profile->major * 10 + profile->minor < 75) {
        return 1;
    }
    return strstr(profile->name, "GeForce GTX") != NULL   ? 0.25
           : strstr(profile->name, "GeForce RTX") != NULL ? 0.5
           : strstr(profile->name, "TITAN") != NULL       ? 0.5
                                                          : 1;
}

double spw_gpu_rate(const struct spw_gpu_profile *profile, enum spw_gpu_type type)
{
    double clocks = profile->clock_khz * 1e-6; /* a nanosecond */

    return clocks * profile->multiprocessors * operations_a_clock(profile, type) *
           part_of_rate(profile, type) * sustained_permille(profile) / 1000;
}

double spw_gpu_memory_rate(const struct spw_gpu_profile *profile)
{
    double part = profile->memory_bus_bits >= STACKED_BITS ? STACKED_PART : 1;

    return part * 2e-6 * profile->memory_clock_khz * profile->memory_bus_bits / 8;
}

/* True, with the speeds of a row, if there is one. */
static bool find_link(const struct spw_gpu_profile *profile, struct spw_gpu_link *ret_link)
{
    for (size_t i = 0; i < sizeof(links) / sizeof(links[0]); i++) {
        if (strncmp(profile->id, links[i].model, strlen(links[i].model)) == 0) {
            *ret_link = (struct spw_gpu_link){links[i].in_mbps * 1e-3, links[i].out_mbps * 1e-3};
            return true;
        }
    }
    return false;
}

struct spw_gpu_link spw_gpu_link_most(const struct spw_gpu_profile *profile)
{
    struct spw_gpu_link link = {profile->link_mbps * 1e-3, profile->link_mbps * 1e-3};

    (void)find_link(profile, &link);
    return link;
}

struct spw_gpu_link spw_gpu_link_reached(const struct spw_gpu_profile *profile)
{
    double reached = profile->link_mbps * 1e-6 * LINK_DEFAULT;
    struct spw_gpu_link link = {reached, reached};

    (void)find_link(profile, &link);
    return link;
}

double spw_gpu_link_ns(struct spw_gpu_link link, uint64_t in_bytes, uint64_t out_bytes)
{
    double in_ns = (double)in_bytes / link.in, out_ns = (double)out_bytes / link.out;

    return in_ns > out_ns ? in_ns : out_ns;
}
