/* The loss of connectionist temporal classification (CTC). */
#include <stdlib.h>

#include "sim/libs/cudnn/tensor.h"

struct cudnnCTCLossStruct {
    cudnnDataType_t type;
    int max_label_length; /* 0: known from the labels */
};

SIM_CUDNN_DESCRIPTOR(CTCLoss)

static cudnnStatus_t set(cudnnCTCLossDescriptor_t loss, cudnnDataType_t type, int max_label_length)
{
    if (loss == NULL) {
        return CUDNN_STATUS_BAD_PARAM;
    }
    *loss = (struct cudnnCTCLossStruct){type, max_label_length};
    return CUDNN_STATUS_SUCCESS;
}

SIM_SHIM_EXPORT cudnnStatus_t cudnnSetCTCLossDescriptorEx(cudnnCTCLossDescriptor_t ctcLossDesc,
                                                          cudnnDataType_t compType,
                                                          cudnnLossNormalizationMode_t normMode,
                                                          cudnnNanPropagation_t gradMode)
{
    return set(ctcLossDesc, compType, 0);
}

SIM_SHIM_EXPORT cudnnStatus_t cudnnSetCTCLossDescriptor_v9(cudnnCTCLossDescriptor_t ctcLossDesc,
                                                           cudnnDataType_t compType,
                                                           cudnnLossNormalizationMode_t normMode,
                                                           cudnnCTCGradMode_t ctcGradMode,
                                                           int maxLabelLength)
{
    return set(ctcLossDesc, compType, maxLabelLength);
}

/* An estimate, because cuDNN does not document the size: the recursion's forward variable and
 * backward variable for each step, each sequence, and each label and blank. */
static size_t workspace_bytes(const struct cudnnTensorStruct *probabilities, size_t max_label)
{
    return 2 * (size_t)probabilities->extents[0] * (size_t)probabilities->extents[1] *
           (2 * max_label + 1) * sizeof(float);
}

SIM_SHIM_EXPORT cudnnStatus_t cudnnGetCTCLossWorkspaceSize(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t probsDesc,
    const cudnnTensorDescriptor_t gradientsDesc, const int *labels, const int *labelLengths,
    const int *inputLengths, cudnnCTCLossAlgo_t algo, cudnnCTCLossDescriptor_t ctcLossDesc,
    size_t *sizeInBytes)
{
    int longest = 0;

    if (probsDesc == NULL || probsDesc->dimensions != 3 || labelLengths == NULL ||
        sizeInBytes == NULL) {
        return CUDNN_STATUS_BAD_PARAM;
    }
    for (int i = 0; i < probsDesc->extents[1]; i++) {
        longest = labelLengths[i] > longest ? labelLengths[i] : longest;
    }
    *sizeInBytes = workspace_bytes(probsDesc, (size_t)longest);
    return CUDNN_STATUS_SUCCESS;
}

SIM_SHIM_EXPORT cudnnStatus_t cudnnGetCTCLossWorkspaceSize_v8(
    cudnnHandle_t handle, cudnnCTCLossAlgo_t algo, cudnnCTCLossDescriptor_t ctcLossDesc,
    const cudnnTensorDescriptor_t probsDesc, const cudnnTensorDescriptor_t gradientsDesc,
    size_t *sizeInBytes)
{
    if (probsDesc == NULL || probsDesc->dimensions != 3 || ctcLossDesc == NULL ||
        sizeInBytes == NULL) {
        return CUDNN_STATUS_BAD_PARAM;
    }
    *sizeInBytes = workspace_bytes(probsDesc, (size_t)ctcLossDesc->max_label_length);
    return CUDNN_STATUS_SUCCESS;
}

/* The device memory that the loss uses in both versions of the function. */
struct loss {
    const struct cudnnTensorStruct *probabilities_desc;
    const void *probabilities;
    void *costs;
    const struct cudnnTensorStruct *gradients_desc;
    void *gradients;
    void *workspace;
    size_t workspace_bytes;
};

static cudnnStatus_t launch(cudnnHandle_t handle, const struct loss *loss,
                            struct sim_shim_work *work)
{
    size_t batch;

    if (handle == NULL || loss->probabilities_desc == NULL ||
        loss->probabilities_desc->dimensions != 3) {
        return CUDNN_STATUS_BAD_PARAM;
    }
    batch = (size_t)loss->probabilities_desc->extents[1];
    sim_shim_add_read(work, loss->probabilities, sim_cudnn_tensor_bytes(loss->probabilities_desc));
    sim_shim_add_write(work, loss->costs,
                       batch * sim_cudnn_type_bits(loss->probabilities_desc->type) / 8);
    sim_shim_add_write(work, loss->gradients, sim_cudnn_tensor_bytes(loss->gradients_desc));
    sim_shim_add_write(work, loss->workspace, loss->workspace_bytes);
    return sim_cudnn_launch(handle, "ctc_loss", work);
}

/* The labels and lengths are in host memory. */
SIM_SHIM_EXPORT cudnnStatus_t cudnnCTCLoss(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t probsDesc, const void *probs,
    const int hostLabels[], const int hostLabelLengths[], const int hostInputLengths[], void *costs,
    const cudnnTensorDescriptor_t gradientsDesc, void *gradients, cudnnCTCLossAlgo_t algo,
    cudnnCTCLossDescriptor_t ctcLossDesc, void *workspace, size_t workSpaceSizeInBytes)
{
    struct sim_shim_work work = {.count = 0};

    return launch(handle,
                  &(struct loss){probsDesc, probs, costs, gradientsDesc, gradients, workspace,
                                 workSpaceSizeInBytes},
                  &work);
}

/* The labels and lengths are in device memory, so the number of labels is not known here. */
SIM_SHIM_EXPORT cudnnStatus_t
cudnnCTCLoss_v8(cudnnHandle_t handle, cudnnCTCLossAlgo_t algo, cudnnCTCLossDescriptor_t ctcLossDesc,
                const cudnnTensorDescriptor_t probsDesc, const void *probs, const int labels[],
                const int labelLengths[], const int inputLengths[], void *costs,
                const cudnnTensorDescriptor_t gradientsDesc, void *gradients,
                size_t workSpaceSizeInBytes, void *workspace)
{
    struct sim_shim_work work = {.count = 0};
    size_t lengths = probsDesc == NULL ? 0 : (size_t)probsDesc->extents[1] * sizeof(*labelLengths);

    sim_shim_add_read(&work, labels, sizeof(*labels));
    sim_shim_add_read(&work, labelLengths, lengths);
    sim_shim_add_read(&work, inputLengths, lengths);
    return launch(handle,
                  &(struct loss){probsDesc, probs, costs, gradientsDesc, gradients, workspace,
                                 workSpaceSizeInBytes},
                  &work);
}
