/* The device memory that NCCL allocates for a communicator. Constant, no locking. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "gpu/profile.h"

/* The events at which NCCL allocates memory. Since version 2.22, NCCL connects two ranks when they
 * first need the connection. */
enum spw_gpu_connection {
    SPW_GPU_COMMUNICATOR, /* the communicator is created */
    SPW_GPU_RING,         /* the first collective of the communicator */
    SPW_GPU_TREE,         /* the first reduction to all ranks */
    SPW_GPU_PEER,         /* the first message from or to a rank on the same machine */
    SPW_GPU_CONNECTIONS,
};

/* The number of GPUs that a machine is assumed to have. */
enum { SPW_GPU_IN_MACHINE = 8 };

/* Memory in MiB. Most of the upper bound belongs to the creation, because a communicator may
 * connect all its ranks at once. */
struct spw_gpu_connection_need {
    uint32_t mib;      /* estimate */
    uint32_t most_mib; /* part of the upper bound */
};

/* Returns the memory for one event, in a communicator of `ranks` ranks on this GPU. */
struct spw_gpu_connection_need spw_gpu_connection_need(const struct spw_gpu_profile *profile,
                                                       enum spw_gpu_connection connection,
                                                       int ranks);

/* Returns true if the numbers of channels are from a published log for this GPU. */
bool spw_gpu_channels_are_published(const struct spw_gpu_profile *profile);
