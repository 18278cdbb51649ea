/* The layouts of tensors that PyTorch passes to kernels.
 *
 * Locking: none; the functions keep no state. */
#pragma once

#include "sim/driver/compute/call.h"

/* PyTorch's OffsetCalculator (ATen/cuda/detail/OffsetCalculator.cuh): computes an element's byte
 * offset in each of several tensors from the element's number. */
enum { SIM_OFFSET_DIMENSIONS = 25, SIM_OFFSET_TENSORS = 4 };

struct sim_offsets {
    size_t dimensions, tensors;
    uint32_t sizes[SIM_OFFSET_DIMENSIONS];
    uint32_t strides[SIM_OFFSET_DIMENSIONS][SIM_OFFSET_TENSORS];
};

/* Bytes of an OffsetCalculator for `tensors` tensors. */
size_t sim_offsets_bytes(size_t tensors);

/* Reads an OffsetCalculator of sim_offsets_bytes(). False if it is malformed. */
bool sim_offsets_read(const unsigned char *from, size_t tensors, struct sim_offsets *ret_offsets);

/* Offsets in tensors without gaps, whose elements have these sizes. */
struct sim_offsets sim_offsets_contiguous(size_t tensors, const size_t *element_bytes);

/* The offset of element `number` in one tensor. */
uint64_t sim_offsets_get(const struct sim_offsets *offsets, uint64_t number, size_t tensor);

/* The largest offset of all elements below `count`. */
uint64_t sim_offsets_last(const struct sim_offsets *offsets, uint64_t count, size_t tensor);

/* PyTorch's TensorInfo, with sizes and strides of 32 or 64 bits (ATen/cuda/detail/TensorInfo.cuh);
 * strides are in elements. */
struct sim_info {
    CUdeviceptr data;
    size_t dimensions;
    uint32_t sizes[SIM_OFFSET_DIMENSIONS], strides[SIM_OFFSET_DIMENSIONS];
};

/* Reads argument `number`. False if the argument is not a TensorInfo, or if the tensor is empty or
 * larger than SIM_WINDOW_BYTES. */
bool sim_info_read(const struct sim_call *call, size_t number, struct sim_info *ret_info);

/* The offset of element `number`; the offset of the last element; the number of elements. Offsets
 * are in elements. */
uint64_t sim_info_get(const struct sim_info *info, uint64_t number);
uint64_t sim_info_last(const struct sim_info *info);
uint64_t sim_info_count(const struct sim_info *info);
