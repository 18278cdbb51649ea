/* The GPUs that can be simulated, from the simulated driver's list. Constant; no locking. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct spw_cli_gpu_profile {
    const char *id;
    uint64_t memory_bytes;
};

/* The profile with that id, or NULL. */
const struct spw_cli_gpu_profile *spw_cli_gpu_profile_find(const char *id);

/* Writes a complaint about an unknown id, with all ids and the nearest. */
void spw_cli_gpu_profile_complain(const char *id, char *complaint, size_t capacity);
