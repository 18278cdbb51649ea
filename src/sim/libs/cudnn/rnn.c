#include "sim/libs/cudnn/rnn.h"

#include <stdlib.h>

int32_t sim_cudnn_rnn_directions(const struct cudnnRNNStruct *rnn)
{
    return rnn->direction == CUDNN_BIDIRECTIONAL ? 2 : 1;
}

int32_t sim_cudnn_rnn_gates(const struct cudnnRNNStruct *rnn)
{
    switch ((int)rnn->mode) {
    case CUDNN_LSTM:
        return 4;
    case CUDNN_GRU:
        return 3;
    default:
        return 1;
    }
}

size_t sim_cudnn_rnn_data_bytes(const struct cudnnRNNDataStruct *data)
{
    size_t steps;

    if (data == NULL) {
        return 0;
    }
    steps = data->layout == CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED
                ? data->total_steps
                : (size_t)data->steps * (size_t)data->batch;
    return steps * (size_t)data->vector * sim_cudnn_type_bits(data->type) / 8;
}

SIM_CUDNN_DESCRIPTOR(RNN)

SIM_SHIM_EXPORT cudnnStatus_t cudnnSetRNNDescriptor_v8(
    cudnnRNNDescriptor_t rnnDesc, cudnnRNNAlgo_t algo, cudnnRNNMode_t cellMode,
    cudnnRNNBiasMode_t biasMode, cudnnDirectionMode_t dirMode, cudnnRNNInputMode_t inputMode,
    cudnnDataType_t dataType, cudnnDataType_t mathPrec, cudnnMathType_t mathType, int32_t inputSize,
    int32_t hiddenSize, int32_t projSize, int32_t numLayers, cudnnDropoutDescriptor_t dropoutDesc,
    uint32_t auxFlags)
{
    if (rnnDesc == NULL || sim_cudnn_type_bits(dataType) == 0 ||
        sim_cudnn_type_bits(mathPrec) == 0 || inputSize < 1 || hiddenSize < 1 || projSize < 0 ||
        projSize > hiddenSize || numLayers < 1) {
        return CUDNN_STATUS_BAD_PARAM;
    }
    *rnnDesc = (struct cudnnRNNStruct){
        .mode = cellMode,
        .bias = biasMode,
        .direction = dirMode,
        .input = inputMode,
        .type = dataType,
        .precision = mathPrec,
        .input_size = inputSize,
        .hidden_size = hiddenSize,
        .projected_size = projSize == 0 ? hiddenSize : projSize,
        .layers = numLayers,
        .dropout = dropoutDesc,
    };
    return CUDNN_STATUS_SUCCESS;
}

SIM_CUDNN_DESCRIPTOR(RNNData)

SIM_SHIM_EXPORT cudnnStatus_t cudnnSetRNNDataDescriptor(
    cudnnRNNDataDescriptor_t rnnDataDesc, cudnnDataType_t dataType, cudnnRNNDataLayout_t layout,
    int maxSeqLength, int batchSize, int vectorSize, const int seqLengthArray[], void *paddingFill)
{
    size_t total = 0;

    if (rnnDataDesc == NULL || sim_cudnn_type_bits(dataType) == 0 || maxSeqLength < 1 ||
        batchSize < 1 || vectorSize < 1 || seqLengthArray == NULL) {
        return CUDNN_STATUS_BAD_PARAM;
    }
    for (int i = 0; i < batchSize; i++) {
        if (seqLengthArray[i] < 0 || seqLengthArray[i] > maxSeqLength) {
            return CUDNN_STATUS_BAD_PARAM;
        }
        total += (size_t)seqLengthArray[i];
    }
    *rnnDataDesc =
        (struct cudnnRNNDataStruct){dataType, layout, maxSeqLength, batchSize, vectorSize, total};
    return CUDNN_STATUS_SUCCESS;
}

/* The shape of a weight matrix. A layer has the matrices for the input first, then the matrices for
 * the state, then the projection. A missing matrix has 0 rows. */
struct shape {
    int32_t rows;
    int32_t columns;
    bool has_bias;
};

static struct shape shape_of(const struct cudnnRNNStruct *rnn, int32_t layer, int32_t number)
{
    int32_t gates = sim_cudnn_rnn_gates(rnn);
    int32_t from_below = rnn->projected_size * sim_cudnn_rnn_directions(rnn);

    if (number < gates) {
        bool has_bias =
            rnn->bias == CUDNN_RNN_DOUBLE_BIAS || rnn->bias == CUDNN_RNN_SINGLE_INP_BIAS;

        if (layer == 0 && rnn->input == CUDNN_SKIP_INPUT) {
            return (struct shape){0, 0, false};
        }
        return (struct shape){rnn->hidden_size, layer == 0 ? rnn->input_size : from_below,
                              has_bias};
    }
    if (number < 2 * gates) {
        return (struct shape){rnn->hidden_size, rnn->projected_size,
                              rnn->bias == CUDNN_RNN_DOUBLE_BIAS ||
                                  rnn->bias == CUDNN_RNN_SINGLE_REC_BIAS};
    }
    if (number == 2 * gates && rnn->projected_size != rnn->hidden_size) {
        return (struct shape){rnn->projected_size, rnn->hidden_size, false};
    }
    return (struct shape){0, 0, false};
}

/* The number of elements before a matrix, or before its bias. All matrices come first, then all
 * biases, without gaps, because programs expect the matrices of one kind to be contiguous. */
static size_t elements_before(const struct cudnnRNNStruct *rnn, int32_t pseudo_layer,
                              int32_t number, bool bias)
{
    int32_t directions = sim_cudnn_rnn_directions(rnn);
    int32_t per_layer = 2 * sim_cudnn_rnn_gates(rnn) + 1;
    int32_t end = pseudo_layer * per_layer + number;
    int32_t all = rnn->layers * directions * per_layer;
    size_t elements = 0;

    for (int32_t i = 0; i < (bias ? all : end); i++) {
        struct shape shape = shape_of(rnn, i / per_layer / directions, i % per_layer);

        elements += (size_t)shape.rows * (size_t)shape.columns;
    }
    for (int32_t i = 0; bias && i < end; i++) {
        struct shape shape = shape_of(rnn, i / per_layer / directions, i % per_layer);

        elements += shape.has_bias ? (size_t)shape.rows : 0;
    }
    return elements;
}

/* The bytes of all weights. It is not documented whether the real library adds padding. */
static size_t weight_bytes(const struct cudnnRNNStruct *rnn)
{
    int32_t layers = rnn->layers * sim_cudnn_rnn_directions(rnn);

    return elements_before(rnn, layers, 0, true) * sim_cudnn_type_bits(rnn->type) / 8;
}

SIM_SHIM_EXPORT cudnnStatus_t cudnnGetRNNWeightSpaceSize(cudnnHandle_t handle,
                                                         cudnnRNNDescriptor_t rnnDesc,
                                                         size_t *weightSpaceSize)
{
    if (rnnDesc == NULL || weightSpaceSize == NULL) {
        return CUDNN_STATUS_BAD_PARAM;
    }
    *weightSpaceSize = weight_bytes(rnnDesc);
    return CUDNN_STATUS_SUCCESS;
}

/* As documented, a matrix has three dimensions, the first of size 1. A matrix that does not exist
 * has no dimensions. */
static void describe(cudnnTensorDescriptor_t tensor, cudnnDataType_t type, int32_t rows,
                     int32_t columns)
{
    bool exists = rows > 0 && columns > 0;

    *tensor = (struct cudnnTensorStruct){
        .type = type,
        .dimensions = exists ? 3 : 0,
        .extents = {1, rows, columns},
        .strides = {rows * columns, columns, 1},
    };
}

SIM_SHIM_EXPORT cudnnStatus_t cudnnGetRNNWeightParams(cudnnHandle_t handle,
                                                      cudnnRNNDescriptor_t rnnDesc,
                                                      int32_t pseudoLayer, size_t weightSpaceSize,
                                                      const void *weightSpace, int32_t linLayerID,
                                                      cudnnTensorDescriptor_t mDesc, void **mAddr,
                                                      cudnnTensorDescriptor_t bDesc, void **bAddr)
{
    size_t element_bytes;
    char *weights = (char *)weightSpace;
    struct shape shape;

    if (rnnDesc == NULL || pseudoLayer < 0 || linLayerID < 0 ||
        pseudoLayer >= rnnDesc->layers * sim_cudnn_rnn_directions(rnnDesc) ||
        linLayerID > 2 * sim_cudnn_rnn_gates(rnnDesc) || weightSpaceSize < weight_bytes(rnnDesc)) {
        return CUDNN_STATUS_BAD_PARAM;
    }
    element_bytes = sim_cudnn_type_bits(rnnDesc->type) / 8;
    shape = shape_of(rnnDesc, pseudoLayer / sim_cudnn_rnn_directions(rnnDesc), linLayerID);
    if (mDesc != NULL) {
        describe(mDesc, rnnDesc->type, shape.rows, shape.columns);
        *mAddr = shape.rows == 0 ? NULL
                                 : weights + element_bytes * elements_before(rnnDesc, pseudoLayer,
                                                                             linLayerID, false);
    }
    if (bDesc != NULL) {
        describe(bDesc, rnnDesc->type, shape.has_bias ? shape.rows : 0, 1);
        *bAddr = !shape.has_bias ? NULL
                                 : weights + element_bytes * elements_before(rnnDesc, pseudoLayer,
                                                                             linLayerID, true);
    }
    return CUDNN_STATUS_SUCCESS;
}
