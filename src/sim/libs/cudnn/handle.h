/* The simulated cuDNN. It does not know the other libraries.
 *
 *   backend      the backend interface
 *   content      what a question to NVIDIA's cuDNN contains
 *   ctc          the CTC loss
 *   descriptor   descriptors of the backend interface
 *   dropout      dropout descriptors
 *   graph        operation graphs: tensors and touched memory
 *   handle       handles, and sizes of element types
 *   libcudnn     the version of the library's symbols
 *   norm         batch normalisation
 *   properties   what cuDNN wants to know of a device
 *   question     asks NVIDIA's cuDNN for engines and workspaces
 *   real         finds NVIDIA's cuDNN
 *   rnn          the shape and the weights of recurrent networks
 *   rnn_run      passes of recurrent networks
 *   spatial      spatial transformers
 *   tensor       tensor descriptors
 *
 * Locking: a handle is used by one thread at a time, as the library documents. */
#pragma once

#include <cudnn.h>

#include "sim/libs/common/shim.h"

struct cudnnContext {
    CUstream stream;
};

/* Bits of an element; 0 for an unknown type. */
size_t sim_cudnn_type_bits(cudnnDataType_t type);

/* Launches the work on the handle's stream. */
cudnnStatus_t sim_cudnn_launch(cudnnHandle_t handle, const char *kernel,
                               const struct sim_shim_work *work);

/* Defines the functions that create and destroy one kind of descriptor. A new descriptor is all
 * zeros. */
#define SIM_CUDNN_DESCRIPTOR(kind)                                                                 \
    SIM_SHIM_EXPORT cudnnStatus_t cudnnCreate##kind##Descriptor(cudnn##kind##Descriptor_t *desc)   \
    {                                                                                              \
        *desc = calloc(1, sizeof(**desc));                                                         \
        return *desc != NULL ? CUDNN_STATUS_SUCCESS                                                \
                             : CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED;                 \
    }                                                                                              \
    SIM_SHIM_EXPORT cudnnStatus_t cudnnDestroy##kind##Descriptor(cudnn##kind##Descriptor_t desc)   \
    {                                                                                              \
        free(desc);                                                                                \
        return CUDNN_STATUS_SUCCESS;                                                               \
    }
