/* The GPUs that can be simulated, from the simulated driver's own list. Constant; no locking. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct spw_cli_gpu_profile {
    const char *id;
    uint64_t memory_bytes;
};

/* The one of that id, or NULL. */
const struct spw_cli_gpu_profile *spw_cli_gpu_profile_find(const char *id);

/* Writes what is wrong with an id that is none: which there are, and the nearest. */
void spw_cli_gpu_profile_complain(const char *id, char *complaint, size_t capacity);
