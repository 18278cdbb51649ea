/* The device memory that NCCL takes for a communicator, which NCCL allocates itself. Constant, no
 * locking. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "gpu/profile.h"

/* What NCCL takes, and when. Since version 2.22 it connects ranks when a function first needs it.
 */
enum spw_gpu_connection {
    SPW_GPU_COMMUNICATOR, /* the communicator is created */
    SPW_GPU_RING,         /* its first collective */
    SPW_GPU_TREE,         /* its first reduction to all ranks */
    SPW_GPU_PEER,         /* the first message from or to a rank on the same machine */
    SPW_GPU_CONNECTIONS,
};

/* As many GPUs are assumed to be in one machine. */
enum { SPW_GPU_IN_MACHINE = 8 };

/* Memory in MiB. */
struct spw_gpu_connection_need {
    uint32_t mib;      /* as an estimate */
    uint32_t most_mib; /* what it adds to the upper bound: for a communicator, which may not connect
                          lazily, nearly all of it */
};

/* The need of a part of a communicator of so many ranks on that GPU. */
struct spw_gpu_connection_need spw_gpu_connection_need(const struct spw_gpu_profile *profile,
                                                       enum spw_gpu_connection connection,
                                                       int ranks);

/* True if the number of channels is from a published log for this GPU. */
bool spw_gpu_channels_are_published(const struct spw_gpu_profile *profile);
