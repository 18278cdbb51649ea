/* Spatial transformers: grid generation from affine matrices, and sampling at grid points. */
#include <stdlib.h>
#include <string.h>

#include "sim/libs/cudnn/tensor.h"

struct cudnnSpatialTransformerStruct {
    cudnnDataType_t type;
    int dimensions;
    int extents[CUDNN_DIM_MAX]; /* of the sampled tensor: batch, channels, space */
};

SIM_CUDNN_DESCRIPTOR(SpatialTransformer)

SIM_SHIM_EXPORT cudnnStatus_t cudnnSetSpatialTransformerNdDescriptor(
    cudnnSpatialTransformerDescriptor_t stDesc, cudnnSamplerType_t samplerType,
    cudnnDataType_t dataType, const int nbDims, const int dimA[])
{
    if (stDesc == NULL || nbDims < 3 || nbDims > CUDNN_DIM_MAX ||
        sim_cudnn_type_bits(dataType) == 0) {
        return CUDNN_STATUS_BAD_PARAM;
    }
    stDesc->type = dataType;
    stDesc->dimensions = nbDims;
    memcpy(stDesc->extents, dimA, (size_t)nbDims * sizeof(dimA[0]));
    return CUDNN_STATUS_SUCCESS;
}

/* Bytes of a grid: for each image and each output position, one coordinate per spatial
 * dimension. */
static size_t grid_bytes(const struct cudnnSpatialTransformerStruct *self)
{
    size_t elements = (size_t)self->extents[0] * (size_t)(self->dimensions - 2);

    for (int i = 2; i < self->dimensions; i++) {
        elements *= (size_t)self->extents[i];
    }
    return elements * sim_cudnn_type_bits(self->type) / 8;
}

/* Bytes of the affine matrices, one per image. */
static size_t matrix_bytes(const struct cudnnSpatialTransformerStruct *self)
{
    size_t space = (size_t)(self->dimensions - 2);

    return (size_t)self->extents[0] * space * (space + 1) * sim_cudnn_type_bits(self->type) / 8;
}

SIM_SHIM_EXPORT cudnnStatus_t cudnnSpatialTfGridGeneratorForward(
    cudnnHandle_t handle, const cudnnSpatialTransformerDescriptor_t stDesc, const void *theta,
    void *grid)
{
    struct sim_shim_work work = {.count = 0};

    if (handle == NULL || stDesc == NULL) {
        return CUDNN_STATUS_BAD_PARAM;
    }
    sim_shim_add_read(&work, theta, matrix_bytes(stDesc));
    sim_shim_add_write(&work, grid, grid_bytes(stDesc));
    return sim_cudnn_launch(handle, "grid_generator", &work);
}

SIM_SHIM_EXPORT cudnnStatus_t cudnnSpatialTfGridGeneratorBackward(
    cudnnHandle_t handle, const cudnnSpatialTransformerDescriptor_t stDesc, const void *dgrid,
    void *dtheta)
{
    struct sim_shim_work work = {.count = 0};

    if (handle == NULL || stDesc == NULL) {
        return CUDNN_STATUS_BAD_PARAM;
    }
    sim_shim_add_read(&work, dgrid, grid_bytes(stDesc));
    sim_shim_add_write(&work, dtheta, matrix_bytes(stDesc));
    return sim_cudnn_launch(handle, "grid_generator_backward", &work);
}

SIM_SHIM_EXPORT cudnnStatus_t cudnnSpatialTfSamplerForward(
    cudnnHandle_t handle, cudnnSpatialTransformerDescriptor_t stDesc, const void *alpha,
    const cudnnTensorDescriptor_t xDesc, const void *x, const void *grid, const void *beta,
    cudnnTensorDescriptor_t yDesc, void *y)
{
    struct sim_shim_work work = {.count = 0};

    if (handle == NULL || stDesc == NULL) {
        return CUDNN_STATUS_BAD_PARAM;
    }
    sim_shim_add_read(&work, x, sim_cudnn_tensor_bytes(xDesc));
    sim_shim_add_read(&work, grid, grid_bytes(stDesc));
    sim_shim_add_write(&work, y, sim_cudnn_tensor_bytes(yDesc));
    return sim_cudnn_launch(handle, "grid_sampler", &work);
}

SIM_SHIM_EXPORT cudnnStatus_t
cudnnSpatialTfSamplerBackward(cudnnHandle_t handle, cudnnSpatialTransformerDescriptor_t stDesc,
                              const void *alpha, const cudnnTensorDescriptor_t xDesc, const void *x,
                              const void *beta, const cudnnTensorDescriptor_t dxDesc, void *dx,
                              const void *alphaDgrid, const cudnnTensorDescriptor_t dyDesc,
                              const void *dy, const void *grid, const void *betaDgrid, void *dgrid)
{
    struct sim_shim_work work = {.count = 0};

    if (handle == NULL || stDesc == NULL) {
        return CUDNN_STATUS_BAD_PARAM;
    }
    sim_shim_add_read(&work, x, sim_cudnn_tensor_bytes(xDesc));
    sim_shim_add_write(&work, dx, sim_cudnn_tensor_bytes(dxDesc));
    sim_shim_add_read(&work, dy, sim_cudnn_tensor_bytes(dyDesc));
    sim_shim_add_read(&work, grid, grid_bytes(stDesc));
    sim_shim_add_write(&work, dgrid, grid_bytes(stDesc));
    return sim_cudnn_launch(handle, "grid_sampler_backward", &work);
}
