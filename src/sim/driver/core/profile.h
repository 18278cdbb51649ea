/* The GPU models that can be simulated (profiles.def). Constant, no locking. */
#pragma once

#include <stddef.h>

/* Constants of one public GPU model. */
struct sim_profile {
    const char *id;   /* h100-80g */
    const char *name; /* what cuDeviceGetName answers */
    size_t memory_mib;
    int major, minor; /* compute capability */
    int multiprocessors;
    int clock_khz, memory_clock_khz, memory_bus_bits;
    int l2_bytes;
    int threads_per_multiprocessor, blocks_per_multiprocessor;
    int shared_per_multiprocessor, shared_per_block_optin;
    int pci_device; /* 16-bit device id; the vendor is NVIDIA's */
};

/* The profile of an id, or NULL. */
const struct sim_profile *sim_profile_find(const char *id);

/* All ids in one text, "one of ...", for messages. */
const char *sim_profile_names(void);

/* The id that a text was probably meant to be, or NULL. */
const char *sim_profile_nearest(const char *text);
