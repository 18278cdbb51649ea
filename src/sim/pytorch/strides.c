#include "sim/pytorch/strides.h"

/* A divisor, with PyTorch's two numbers for a faster division. */
#define DIVIDER_BYTES (3 * sizeof(uint32_t))

size_t sim_offsets_bytes(size_t tensors)
{
    return sizeof(uint32_t) + SIM_OFFSET_DIMENSIONS * (DIVIDER_BYTES + tensors * sizeof(uint32_t));
}

bool sim_offsets_read(const unsigned char *from, size_t tensors, struct sim_offsets *ret_offsets)
{
    const unsigned char *sizes = from + sizeof(uint32_t);
    const unsigned char *strides = sizes + SIM_OFFSET_DIMENSIONS * DIVIDER_BYTES;

    *ret_offsets = (struct sim_offsets){.dimensions = sim_read_u32(from), .tensors = tensors};
    if (ret_offsets->dimensions > SIM_OFFSET_DIMENSIONS || tensors > SIM_OFFSET_TENSORS) {
        return false;
    }
    for (size_t d = 0; d < ret_offsets->dimensions; d++) {
        ret_offsets->sizes[d] = sim_read_u32(sizes + d * DIVIDER_BYTES);
        if (ret_offsets->sizes[d] == 0) {
            return false;
        }
        for (size_t t = 0; t < tensors; t++) {
            ret_offsets->strides[d][t] =
                sim_read_u32(strides + (d * tensors + t) * sizeof(uint32_t));
        }
    }
    return true;
}

struct sim_offsets sim_offsets_contiguous(size_t tensors, const size_t *element_bytes)
{
    struct sim_offsets offsets = {.dimensions = 1, .tensors = tensors, .sizes = {UINT32_MAX}};

    for (size_t t = 0; t < tensors; t++) {
        offsets.strides[0][t] = (uint32_t)element_bytes[t];
    }
    return offsets;
}

uint64_t sim_offsets_get(const struct sim_offsets *offsets, uint64_t number, size_t tensor)
{
    uint64_t offset = 0;

    for (size_t d = 0; d < offsets->dimensions; d++) {
        offset += number % offsets->sizes[d] * offsets->strides[d][tensor];
        number /= offsets->sizes[d];
    }
    return offset;
}

uint64_t sim_offsets_last(const struct sim_offsets *offsets, uint64_t count, size_t tensor)
{
    uint64_t last = 0;

    for (size_t d = 0; d < offsets->dimensions && count > 0; d++) {
        uint64_t size = offsets->sizes[d];

        last += ((size < count ? size : count) - 1) * offsets->strides[d][tensor];
        count = (count + size - 1) / size;
    }
    return last;
}

/* The address, the sizes, the strides, and the number of dimensions. */
static size_t info_bytes(size_t width)
{
    return sizeof(CUdeviceptr) + (2 * SIM_OFFSET_DIMENSIONS + 1) * width;
}

static uint64_t read_width(const unsigned char *from, size_t width)
{
    return width == sizeof(uint64_t) ? sim_read_u64(from) : sim_read_u32(from);
}

bool sim_info_read(const struct sim_call *call, size_t number, struct sim_info *ret_info)
{
    const unsigned char *info = sim_call_argument(call, number, info_bytes(sizeof(uint32_t)));
    size_t width = info != NULL && call->params[number].size >= info_bytes(sizeof(uint64_t))
                       ? sizeof(uint64_t)
                       : sizeof(uint32_t);
    const unsigned char *sizes = info + sizeof(CUdeviceptr);
    const unsigned char *strides = sizes + SIM_OFFSET_DIMENSIONS * width;
    uint64_t count = 1;

    if (info == NULL) {
        return false;
    }
    ret_info->data = sim_read_u64(info);
    ret_info->dimensions = sim_read_u32(strides + SIM_OFFSET_DIMENSIONS * width);
    if (ret_info->dimensions > SIM_OFFSET_DIMENSIONS) {
        return false;
    }
    for (size_t d = 0; d < ret_info->dimensions; d++) {
        uint64_t size = read_width(sizes + d * width, width);
        uint64_t stride = read_width(strides + d * width, width);

        if (size == 0 || size > SIM_WINDOW_BYTES || (count *= size) > SIM_WINDOW_BYTES ||
            stride > UINT32_MAX || (size > 1 && stride > SIM_WINDOW_BYTES / (size - 1))) {
            return false;
        }
        ret_info->sizes[d] = (uint32_t)size;
        ret_info->strides[d] = (uint32_t)stride;
    }
    return true;
}

uint64_t sim_info_get(const struct sim_info *info, uint64_t number)
{
    uint64_t at = 0;

    for (size_t d = info->dimensions; d-- > 0;) {
        at += number % info->sizes[d] * info->strides[d];
        number /= info->sizes[d];
    }
    return at;
}

uint64_t sim_info_last(const struct sim_info *info)
{
    uint64_t last = 0;

    for (size_t d = 0; d < info->dimensions; d++) {
        last += (uint64_t)(info->sizes[d] - 1) * info->strides[d];
    }
    return last;
}

uint64_t sim_info_count(const struct sim_info *info)
{
    uint64_t count = 1;

    for (size_t d = 0; d < info->dimensions; d++) {
        count *= info->sizes[d];
    }
    return count;
}
