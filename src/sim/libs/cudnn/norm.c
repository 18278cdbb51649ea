/* Batch normalisation in the older interface. cuDNN documents no sizes, so these are estimates: no
 * workspace, and one bit per element kept for the backward pass if an activation follows. */
#include "sim/libs/cudnn/tensor.h"

SIM_SHIM_EXPORT cudnnStatus_t cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, cudnnBatchNormOps_t bnOps,
    const cudnnTensorDescriptor_t xDesc, const cudnnTensorDescriptor_t zDesc,
    const cudnnTensorDescriptor_t yDesc, const cudnnTensorDescriptor_t bnScaleBiasMeanVarDesc,
    const cudnnActivationDescriptor_t activationDesc, size_t *sizeInBytes)
{
    *sizeInBytes = 0;
    return CUDNN_STATUS_SUCCESS;
}

SIM_SHIM_EXPORT cudnnStatus_t cudnnGetBatchNormalizationBackwardExWorkspaceSize(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, cudnnBatchNormOps_t bnOps,
    const cudnnTensorDescriptor_t xDesc, const cudnnTensorDescriptor_t yDesc,
    const cudnnTensorDescriptor_t dyDesc, const cudnnTensorDescriptor_t dzDesc,
    const cudnnTensorDescriptor_t dxDesc, const cudnnTensorDescriptor_t dBnScaleBiasDesc,
    const cudnnActivationDescriptor_t activationDesc, size_t *sizeInBytes)
{
    *sizeInBytes = 0;
    return CUDNN_STATUS_SUCCESS;
}

SIM_SHIM_EXPORT cudnnStatus_t cudnnGetBatchNormalizationTrainingExReserveSpaceSize(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, cudnnBatchNormOps_t bnOps,
    const cudnnActivationDescriptor_t activationDesc, const cudnnTensorDescriptor_t xDesc,
    size_t *sizeInBytes)
{
    *sizeInBytes = bnOps == CUDNN_BATCHNORM_OPS_BN ? 0 : sim_cudnn_tensor_bytes(xDesc) / 8;
    return CUDNN_STATUS_SUCCESS;
}

SIM_SHIM_EXPORT cudnnStatus_t cudnnBatchNormalizationForwardTrainingEx(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, cudnnBatchNormOps_t bnOps, const void *alpha,
    const void *beta, const cudnnTensorDescriptor_t xDesc, const void *xData,
    const cudnnTensorDescriptor_t zDesc, const void *zData, const cudnnTensorDescriptor_t yDesc,
    void *yData, const cudnnTensorDescriptor_t bnScaleBiasMeanVarDesc, const void *bnScale,
    const void *bnBias, double exponentialAverageFactor, void *resultRunningMean,
    void *resultRunningVariance, double epsilon, void *resultSaveMean, void *resultSaveInvVariance,
    cudnnActivationDescriptor_t activationDesc, void *workspace, size_t workSpaceSizeInBytes,
    void *reserveSpace, size_t reserveSpaceSizeInBytes)
{
    size_t channels = sim_cudnn_tensor_bytes(bnScaleBiasMeanVarDesc);
    struct sim_shim_work work = {.count = 0};

    sim_shim_add_read(&work, xData, sim_cudnn_tensor_bytes(xDesc));
    sim_shim_add_read(&work, zData, sim_cudnn_tensor_bytes(zDesc));
    sim_shim_add_write(&work, yData, sim_cudnn_tensor_bytes(yDesc));
    sim_shim_add_read(&work, bnScale, channels);
    sim_shim_add_read(&work, bnBias, channels);
    sim_shim_add_write(&work, resultRunningMean, channels);
    sim_shim_add_write(&work, resultRunningVariance, channels);
    sim_shim_add_write(&work, resultSaveMean, channels);
    sim_shim_add_write(&work, resultSaveInvVariance, channels);
    sim_shim_add_write(&work, workspace, workSpaceSizeInBytes);
    sim_shim_add_write(&work, reserveSpace, reserveSpaceSizeInBytes);
    return sim_cudnn_launch(handle, "batch_norm", &work);
}

SIM_SHIM_EXPORT cudnnStatus_t cudnnBatchNormalizationForwardInference(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, const void *alpha, const void *beta,
    const cudnnTensorDescriptor_t xDesc, const void *x, const cudnnTensorDescriptor_t yDesc,
    void *y, const cudnnTensorDescriptor_t bnScaleBiasMeanVarDesc, const void *bnScale,
    const void *bnBias, const void *estimatedMean, const void *estimatedVariance, double epsilon)
{
    const void *channels[] = {bnScale, bnBias, estimatedMean, estimatedVariance};
    size_t bytes[] = {sim_cudnn_tensor_bytes(xDesc), sim_cudnn_tensor_bytes(yDesc)};
    struct sim_shim_work work = {
        .demand = {.work = SIM_WORK_ELEMENTS, .bytes = (float)(bytes[0] + bytes[1])}};

    sim_shim_add_read(&work, x, bytes[0]);
    sim_shim_add_write(&work, y, bytes[1]);
    for (size_t i = 0; i < sizeof(channels) / sizeof(channels[0]); i++) {
        sim_shim_add_read(&work, channels[i], sim_cudnn_tensor_bytes(bnScaleBiasMeanVarDesc));
    }
    return sim_cudnn_launch(handle, "batch_norm_inference", &work);
}

SIM_SHIM_EXPORT cudnnStatus_t cudnnBatchNormalizationBackwardEx(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, cudnnBatchNormOps_t bnOps,
    const void *alphaDataDiff, const void *betaDataDiff, const void *alphaParamDiff,
    const void *betaParamDiff, const cudnnTensorDescriptor_t xDesc, const void *xData,
    const cudnnTensorDescriptor_t yDesc, const void *yData, const cudnnTensorDescriptor_t dyDesc,
    const void *dyData, const cudnnTensorDescriptor_t dzDesc, void *dzData,
    const cudnnTensorDescriptor_t dxDesc, void *dxData,
    const cudnnTensorDescriptor_t dBnScaleBiasDesc, const void *bnScaleData, const void *bnBiasData,
    void *dBnScaleData, void *dBnBiasData, double epsilon, const void *savedMean,
    const void *savedInvVariance, cudnnActivationDescriptor_t activationDesc, void *workSpace,
    size_t workSpaceSizeInBytes, void *reserveSpace, size_t reserveSpaceSizeInBytes)
{
    size_t channels = sim_cudnn_tensor_bytes(dBnScaleBiasDesc);
    struct sim_shim_work work = {.count = 0};

    sim_shim_add_read(&work, xData, sim_cudnn_tensor_bytes(xDesc));
    sim_shim_add_read(&work, yData, sim_cudnn_tensor_bytes(yDesc));
    sim_shim_add_read(&work, dyData, sim_cudnn_tensor_bytes(dyDesc));
    sim_shim_add_write(&work, dzData, sim_cudnn_tensor_bytes(dzDesc));
    sim_shim_add_write(&work, dxData, sim_cudnn_tensor_bytes(dxDesc));
    sim_shim_add_read(&work, bnScaleData, channels);
    sim_shim_add_read(&work, bnBiasData, channels);
    sim_shim_add_write(&work, dBnScaleData, channels);
    sim_shim_add_write(&work, dBnBiasData, channels);
    sim_shim_add_read(&work, savedMean, channels);
    sim_shim_add_read(&work, savedInvVariance, channels);
    sim_shim_add_write(&work, workSpace, workSpaceSizeInBytes);
    sim_shim_add_write(&work, reserveSpace, reserveSpaceSizeInBytes);
    return sim_cudnn_launch(handle, "batch_norm_backward", &work);
}
