/* Forward and backward passes of recurrent networks, and their temporary memory. */
#include "sim/libs/cudnn/rnn.h"

/* Both sizes are estimates, because cuDNN does not document them. The workspace holds the gates of
 * one layer, for all steps and directions. The reserve space holds, for each layer, the gates, the
 * cell's state, the output, and a copy of the output after the dropout between layers. */
static size_t workspace_bytes(const struct cudnnRNNStruct *rnn,
                              const struct cudnnRNNDataStruct *data)
{
    return data->total_steps * (size_t)(sim_cudnn_rnn_gates(rnn) * sim_cudnn_rnn_directions(rnn)) *
           (size_t)rnn->hidden_size * sim_cudnn_type_bits(rnn->precision) / 8;
}

static size_t reserve_bytes(const struct cudnnRNNStruct *rnn, const struct cudnnRNNDataStruct *data)
{
    size_t cells = data->total_steps * (size_t)sim_cudnn_rnn_directions(rnn) * (size_t)rnn->layers;
    size_t per_cell =
        (size_t)(sim_cudnn_rnn_gates(rnn) + (rnn->mode == CUDNN_LSTM)) * (size_t)rnn->hidden_size +
        (size_t)rnn->projected_size * (rnn->dropout != NULL ? 2 : 1);

    return cells * per_cell * sim_cudnn_type_bits(rnn->type) / 8;
}

SIM_SHIM_EXPORT cudnnStatus_t cudnnGetRNNTempSpaceSizes(
    cudnnHandle_t handle, cudnnRNNDescriptor_t rnnDesc, cudnnForwardMode_t fwdMode,
    cudnnRNNDataDescriptor_t xDesc, size_t *workSpaceSize, size_t *reserveSpaceSize)
{
    if (rnnDesc == NULL || xDesc == NULL) {
        return CUDNN_STATUS_BAD_PARAM;
    }
    if (workSpaceSize != NULL) {
        *workSpaceSize = workspace_bytes(rnnDesc, xDesc);
    }
    if (reserveSpaceSize != NULL) {
        *reserveSpaceSize = fwdMode == CUDNN_FWD_MODE_TRAINING ? reserve_bytes(rnnDesc, xDesc) : 0;
    }
    return CUDNN_STATUS_SUCCESS;
}

/* Adds the sequence lengths in device memory, if the caller passes them. */
static void add_lengths(struct sim_shim_work *work, const int32_t *lengths,
                        const struct cudnnRNNDataStruct *data)
{
    sim_shim_add_read(work, lengths, data == NULL ? 0 : (size_t)data->batch * sizeof(*lengths));
}

SIM_SHIM_EXPORT cudnnStatus_t
cudnnRNNForward(cudnnHandle_t handle, cudnnRNNDescriptor_t rnnDesc, cudnnForwardMode_t fwdMode,
                const int32_t devSeqLengths[], cudnnRNNDataDescriptor_t xDesc, const void *x,
                cudnnRNNDataDescriptor_t yDesc, void *y, cudnnTensorDescriptor_t hDesc,
                const void *hx, void *hy, cudnnTensorDescriptor_t cDesc, const void *cx, void *cy,
                size_t weightSpaceSize, const void *weightSpace, size_t workSpaceSize,
                void *workSpace, size_t reserveSpaceSize, void *reserveSpace)
{
    struct sim_shim_work work = {.count = 0};

    if (handle == NULL || rnnDesc == NULL || xDesc == NULL || yDesc == NULL ||
        workSpaceSize < workspace_bytes(rnnDesc, xDesc) ||
        (fwdMode == CUDNN_FWD_MODE_TRAINING && reserveSpaceSize < reserve_bytes(rnnDesc, xDesc))) {
        return CUDNN_STATUS_BAD_PARAM;
    }
    add_lengths(&work, devSeqLengths, xDesc);
    sim_shim_add_read(&work, x, sim_cudnn_rnn_data_bytes(xDesc));
    sim_shim_add_write(&work, y, sim_cudnn_rnn_data_bytes(yDesc));
    sim_shim_add_read(&work, hx, sim_cudnn_tensor_bytes(hDesc));
    sim_shim_add_write(&work, hy, sim_cudnn_tensor_bytes(hDesc));
    sim_shim_add_read(&work, cx, sim_cudnn_tensor_bytes(cDesc));
    sim_shim_add_write(&work, cy, sim_cudnn_tensor_bytes(cDesc));
    sim_shim_add_read(&work, weightSpace, weightSpaceSize);
    sim_shim_add_write(&work, workSpace, workSpaceSize);
    sim_shim_add_write(&work, reserveSpace, reserveSpaceSize);
    return sim_cudnn_launch(handle, "rnn_forward", &work);
}

SIM_SHIM_EXPORT cudnnStatus_t cudnnRNNBackwardData_v8(
    cudnnHandle_t handle, cudnnRNNDescriptor_t rnnDesc, const int32_t devSeqLengths[],
    cudnnRNNDataDescriptor_t yDesc, const void *y, const void *dy, cudnnRNNDataDescriptor_t xDesc,
    void *dx, cudnnTensorDescriptor_t hDesc, const void *hx, const void *dhy, void *dhx,
    cudnnTensorDescriptor_t cDesc, const void *cx, const void *dcy, void *dcx,
    size_t weightSpaceSize, const void *weightSpace, size_t workSpaceSize, void *workSpace,
    size_t reserveSpaceSize, void *reserveSpace)
{
    const void *states[] = {hx, dhy};
    const void *cells[] = {cx, dcy};
    struct sim_shim_work work = {.count = 0};

    if (handle == NULL || rnnDesc == NULL || xDesc == NULL || yDesc == NULL) {
        return CUDNN_STATUS_BAD_PARAM;
    }
    add_lengths(&work, devSeqLengths, xDesc);
    sim_shim_add_read(&work, y, sim_cudnn_rnn_data_bytes(yDesc));
    sim_shim_add_read(&work, dy, sim_cudnn_rnn_data_bytes(yDesc));
    sim_shim_add_write(&work, dx, sim_cudnn_rnn_data_bytes(xDesc));
    for (size_t i = 0; i < 2; i++) {
        sim_shim_add_read(&work, states[i], sim_cudnn_tensor_bytes(hDesc));
        sim_shim_add_read(&work, cells[i], sim_cudnn_tensor_bytes(cDesc));
    }
    sim_shim_add_write(&work, dhx, sim_cudnn_tensor_bytes(hDesc));
    sim_shim_add_write(&work, dcx, sim_cudnn_tensor_bytes(cDesc));
    sim_shim_add_read(&work, weightSpace, weightSpaceSize);
    sim_shim_add_write(&work, workSpace, workSpaceSize);
    sim_shim_add_write(&work, reserveSpace, reserveSpaceSize);
    return sim_cudnn_launch(handle, "rnn_backward_data", &work);
}

SIM_SHIM_EXPORT cudnnStatus_t cudnnRNNBackwardWeights_v8(
    cudnnHandle_t handle, cudnnRNNDescriptor_t rnnDesc, cudnnWgradMode_t addGrad,
    const int32_t devSeqLengths[], cudnnRNNDataDescriptor_t xDesc, const void *x,
    cudnnTensorDescriptor_t hDesc, const void *hx, cudnnRNNDataDescriptor_t yDesc, const void *y,
    size_t weightSpaceSize, void *dweightSpace, size_t workSpaceSize, void *workSpace,
    size_t reserveSpaceSize, void *reserveSpace)
{
    struct sim_shim_work work = {.count = 0};

    if (handle == NULL || rnnDesc == NULL || xDesc == NULL || yDesc == NULL) {
        return CUDNN_STATUS_BAD_PARAM;
    }
    add_lengths(&work, devSeqLengths, xDesc);
    sim_shim_add_read(&work, x, sim_cudnn_rnn_data_bytes(xDesc));
    sim_shim_add_read(&work, hx, sim_cudnn_tensor_bytes(hDesc));
    sim_shim_add_read(&work, y, sim_cudnn_rnn_data_bytes(yDesc));
    sim_shim_add_write(&work, dweightSpace, weightSpaceSize);
    sim_shim_add_write(&work, workSpace, workSpaceSize);
    sim_shim_add_read(&work, reserveSpace, reserveSpaceSize);
    return sim_cudnn_launch(handle, "rnn_backward_weights", &work);
}
