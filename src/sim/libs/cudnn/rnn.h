/* Recurrent networks: their shape, and where their weights are.
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
    int32_t projected_size; /* of what goes to the next step; the hidden size without projection */
    int32_t layers;
    cudnnDropoutDescriptor_t dropout; /* the caller's */
};

struct cudnnRNNDataStruct {
    cudnnDataType_t type;
    cudnnRNNDataLayout_t layout;
    int steps;
    int batch;
    int vector;
    size_t total_steps; /* of all sequences of the batch */
};

/* 1 or 2. */
int32_t sim_cudnn_rnn_directions(const struct cudnnRNNStruct *rnn);

/* Matrices that a cell applies to its input, and as many to its state. */
int32_t sim_cudnn_rnn_gates(const struct cudnnRNNStruct *rnn);

/* Bytes of the tensor behind a data descriptor; 0 for no descriptor. */
size_t sim_cudnn_rnn_data_bytes(const struct cudnnRNNDataStruct *data);
