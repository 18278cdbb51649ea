/* Figures of cards: profiles, memory that programs do not allocate, NCCL's buffers. It does not
 * know any folder but common.
 *
 *   communicator    the device memory of an NCCL communicator
 *   communicators   cards whose links let NCCL use many channels
 *   limits          limits that depend only on the compute capability
 *   overheads       memory of a card that programs do not allocate
 *   profile         the models that can be simulated, found by name
 *   profiles        the figures of each model, with their sources
 *   rate            the rates at which a card computes and moves memory
 *   rates           operations a clock of each capability; what cards and their links sustain
 *   sharing         GPUs that share memory or page tables with the host
 *
 * Profiles are constant. No locking. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Memory on a card that a program does not allocate: the CUDA context, the code of kernels in use,
 * the memory of libraries. */
struct spw_gpu_overhead {
    uint32_t mib;      /* estimate */
    uint32_t most_mib; /* upper bound */
    uint32_t messages; /* number of published sources; 0: estimated from other GPUs */
};

/* What a GPU shares with the host; see sharing.def. */
struct spw_gpu_sharing {
    bool one_memory;       /* it has no memory of its own */
    bool host_page_tables; /* it uses the page tables of the host */
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
    const char *id;             /* such as h100-80g */
    const char *name;           /* the name that cuDeviceGetName reports */
    enum spw_gpu_source memory; /* the source of memory_mib */
    size_t memory_mib;
    int major, minor; /* compute capability */
    int threads_per_multiprocessor, blocks_per_multiprocessor;
    int shared_per_multiprocessor, shared_per_block_optin;
    int multiprocessors;
    int clock_khz, memory_clock_khz, memory_bus_bits;
    int l2_bytes;
    int link_mbps; /* specified bandwidth of the link to the host, in each direction, in megabytes a
                      second */
    int pci_device; /* 16-bit PCI device id; the vendor is NVIDIA */
};

/* Returns the profile of an id, or of a model: rtx4090, 4090, "RTX 4090". The name of a model does
 * not match profiles of laptops, variants and slices. Returns NULL if there is no profile, or more
 * than one. */
const struct spw_gpu_profile *spw_gpu_profile_find(const char *id);

/* Returns the profile with this `index`, from 0, in the order of profiles.def; NULL behind the
 * last. */
const struct spw_gpu_profile *spw_gpu_profile_at(size_t index);

/* Writes a hint for a message about an unknown id: the most similar id, and how to list all ids. */
void spw_gpu_profile_expected(const char *id, char *text, size_t capacity);

/* Returns the overhead of a card of this model. */
struct spw_gpu_overhead spw_gpu_profile_overhead(const struct spw_gpu_profile *profile);

/* Returns what a GPU of this model shares with the host. */
struct spw_gpu_sharing spw_gpu_profile_sharing(const struct spw_gpu_profile *profile);
