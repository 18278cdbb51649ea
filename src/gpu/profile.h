/* The GPU models that can be simulated (profiles.def). Constant, no locking. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* The memory that a card holds besides what a program asks for: the CUDA context, the code of
 * kernels that are used, what libraries keep. */
struct spw_gpu_overhead {
    uint32_t mib;      /* as an estimate */
    uint32_t most_mib; /* an upper bound */
    uint32_t messages; /* published ones that the figures are from; 0: estimated from other GPUs */
};

/* The source of a GPU's total memory; see profiles.def. */
enum spw_gpu_source {
    SPW_GPU_REPORTED,
    SPW_GPU_INFERRED,
    SPW_GPU_SIBLING,
    SPW_GPU_LISTED,
    SPW_GPU_ESTIMATED,
};

/* Constants of one public GPU model. */
struct spw_gpu_profile {
    const char *id;             /* h100-80g */
    const char *name;           /* what cuDeviceGetName answers */
    enum spw_gpu_source memory; /* the source of the next */
    size_t memory_mib;
    int major, minor; /* compute capability */
    int threads_per_multiprocessor, blocks_per_multiprocessor;
    int shared_per_multiprocessor, shared_per_block_optin;
    int multiprocessors;
    int clock_khz, memory_clock_khz, memory_bus_bits;
    int l2_bytes;
    int link_mbps; /* to the host, in each direction, in megabytes a second, by its specification */
    int pci_device; /* 16-bit device id; the vendor is NVIDIA's */
};

/* The profile of an id, or of a model that has one profile beside those of laptops, variants and
 * slices: rtx4090, 4090, "RTX 4090". NULL when there is none, or several. */
const struct spw_gpu_profile *spw_gpu_profile_find(const char *id);

/* The profiles in their order: `index` from 0; NULL behind the last. */
const struct spw_gpu_profile *spw_gpu_profile_at(size_t index);

/* Writes what was expected in place of an unknown id, for messages: the nearest id, and where all
 * are listed. */
void spw_gpu_profile_expected(const char *id, char *text, size_t capacity);

/* Returns the memory that a card of this model holds besides. */
struct spw_gpu_overhead spw_gpu_profile_overhead(const struct spw_gpu_profile *profile);
