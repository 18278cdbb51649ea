#include "cli/verdict/profiles.h"

#include <stdio.h>

#include "common/size.h"
#include "gpu/profile.h"

/* Bytes a second, from both edges of the memory's clock. */
static double memory_rate(const struct spw_gpu_profile *profile)
{
    return 2e3 * profile->memory_clock_khz * profile->memory_bus_bits / 8;
}

static void print_row(const struct spw_gpu_profile *profile)
{
    struct spw_gpu_overhead overhead = spw_gpu_profile_overhead(profile);
    char size[SPW_SIZE_TEXT], capability[16];

    snprintf(capability, sizeof(capability), "%d.%d", profile->major, profile->minor);
    printf("%-22s %10s %5s %4d %6.0f %6.0f %5u-%-5u%s %s\n", profile->id,
           spw_size_text((uint64_t)profile->memory_mib << 20, size), capability,
           profile->multiprocessors, memory_rate(profile) / 1e9, profile->link_mbps / 1e3,
           overhead.mib, overhead.most_mib, overhead.messages > 0 ? " " : "~", profile->name);
}

void spw_cli_profiles_print(void)
{
    const struct spw_gpu_profile *profile;

    printf("%-22s %10s %5s %4s %6s %6s %12s %s\n", "profile", "memory", "sm", "SMs", "GB/s", "link",
           "besides, MiB", "GPU");
    for (size_t i = 0; (profile = spw_gpu_profile_at(i)) != NULL; i++) {
        print_row(profile);
    }
    puts("\nGB/s: of its memory; link: GB/s to the host, by specification. besides: what the card "
         "holds\n"
         "besides the program's memory (CUDA context, code, libraries), estimate and upper bound;\n"
         "~: from the number of SMs, others from published figures");
}
