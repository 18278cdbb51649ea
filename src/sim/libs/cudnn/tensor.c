#include "sim/libs/cudnn/tensor.h"

#include <stdlib.h>
#include <string.h>

size_t sim_cudnn_tensor_bytes(const struct cudnnTensorStruct *tensor)
{
    size_t elements = 1;

    if (tensor == NULL) {
        return 0;
    }
    for (int i = 0; i < tensor->dimensions; i++) {
        if (tensor->extents[i] == 0) {
            return 0;
        }
        elements += (size_t)(tensor->extents[i] - 1) * (size_t)tensor->strides[i];
    }
    return (elements * sim_cudnn_type_bits(tensor->type) + 7) / 8;
}

SIM_CUDNN_DESCRIPTOR(Tensor)

SIM_SHIM_EXPORT cudnnStatus_t cudnnSetTensorNdDescriptor(cudnnTensorDescriptor_t tensorDesc,
                                                         cudnnDataType_t dataType, int nbDims,
                                                         const int dimA[], const int strideA[])
{
    if (tensorDesc == NULL || nbDims < 1 || nbDims > CUDNN_DIM_MAX ||
        sim_cudnn_type_bits(dataType) == 0) {
        return CUDNN_STATUS_BAD_PARAM;
    }
    tensorDesc->type = dataType;
    tensorDesc->dimensions = nbDims;
    memcpy(tensorDesc->extents, dimA, (size_t)nbDims * sizeof(dimA[0]));
    memcpy(tensorDesc->strides, strideA, (size_t)nbDims * sizeof(strideA[0]));
    return CUDNN_STATUS_SUCCESS;
}

SIM_SHIM_EXPORT cudnnStatus_t cudnnGetTensorNdDescriptor(const cudnnTensorDescriptor_t tensorDesc,
                                                         int nbDimsRequested,
                                                         cudnnDataType_t *dataType, int *nbDims,
                                                         int dimA[], int strideA[])
{
    int count;

    if (tensorDesc == NULL || nbDimsRequested < 0) {
        return CUDNN_STATUS_BAD_PARAM;
    }
    count = nbDimsRequested < tensorDesc->dimensions ? nbDimsRequested : tensorDesc->dimensions;
    *dataType = tensorDesc->type;
    *nbDims = tensorDesc->dimensions;
    memcpy(dimA, tensorDesc->extents, (size_t)count * sizeof(dimA[0]));
    memcpy(strideA, tensorDesc->strides, (size_t)count * sizeof(strideA[0]));
    return CUDNN_STATUS_SUCCESS;
}
