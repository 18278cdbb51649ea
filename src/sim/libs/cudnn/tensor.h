/* Tensor descriptors of cuDNN's older interface.
 *
 * Locking: a descriptor is used by one thread at a time, as the library documents. */
#pragma once

#include "sim/libs/cudnn/handle.h"

struct cudnnTensorStruct {
    cudnnDataType_t type;
    int dimensions;
    int extents[CUDNN_DIM_MAX];
    int strides[CUDNN_DIM_MAX];
};

/* Bytes from a tensor's first element to its last; 0 for NULL. */
size_t sim_cudnn_tensor_bytes(const struct cudnnTensorStruct *tensor);
