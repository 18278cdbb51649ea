/* Recurrent networks: their shape and the layout of their weights.
 *
 * Locking: a descriptor is used by one thread at a time, as the library documents. */
#pragma once

#include "sim/libs/cudnn/tensor.h"

struct cudnnRNNStruct {
    cudnnRNNMode_t mode;
    cudnnRNNBiasMode_t bias;
    cudnnDirectionMode_t direction;
    cudnnRNNInputMode_t input;
    cudnnDataType_t type;
    cudnnDataType_t precision;
    int32_t input_size;
    int32_t hidden_size;
    int32_t projected_size; /* size of the state after projection; without one, the hidden size */
    int32_t layers;
    cudnnDropoutDescriptor_t dropout; /* the caller's */
};

struct cudnnRNNDataStruct {
    cudnnDataType_t type;
    cudnnRNNDataLayout_t layout;
    int steps;
    int batch;
    int vector;
    size_t total_steps; /* sum over all sequences of the batch */
};

/* The number of directions: 1, or 2 for bidirectional networks. */
int32_t sim_cudnn_rnn_directions(const struct cudnnRNNStruct *rnn);

/* The number of matrices that a cell applies to its input. The cell applies the same number of
 * matrices to its state. */
int32_t sim_cudnn_rnn_gates(const struct cudnnRNNStruct *rnn);

/* Bytes of the tensor that a data descriptor describes; 0 for NULL. */
size_t sim_cudnn_rnn_data_bytes(const struct cudnnRNNDataStruct *data);
