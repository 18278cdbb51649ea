#include "sim/driver/compute/call.h"

#include <stdlib.h>
#include <string.h>

#include "sim/driver/memory/content.h"

/* A divisor, with PyTorch's two numbers for a faster division. */
#define DIVIDER_BYTES (3 * sizeof(uint32_t))

/* The most elements of a launch that is computed, with known and with unknown inputs. */
#define KNOWN_ELEMENTS   ((uint64_t)1 << 20)
#define UNKNOWN_ELEMENTS ((uint64_t)4096)

bool sim_call_admits(uint64_t elements, bool is_known)
{
    return elements <= (is_known ? KNOWN_ELEMENTS : UNKNOWN_ELEMENTS);
}

const unsigned char *sim_call_argument(const struct sim_call *call, size_t number, size_t size)
{
    return number < call->param_count && size <= call->params[number].size
               ? call->arguments + call->params[number].offset
               : NULL;
}

uint32_t sim_read_u32(const unsigned char *from)
{
    uint32_t number;

    memcpy(&number, from, sizeof(number));
    return number;
}

uint64_t sim_read_u64(const unsigned char *from)
{
    uint64_t number;

    memcpy(&number, from, sizeof(number));
    return number;
}

bool sim_window_open(struct sim_window *window, CUdeviceptr first, size_t size, int device,
                     bool is_written)
{
    *window = (struct sim_window){.first = first, .size = size, .is_written = is_written};
    if (size == 0 || size > SIM_WINDOW_BYTES || sim_mem_kind(first) == SIM_MEM_PAGEABLE ||
        sim_mem_check(first, size, device, is_written) != CUDA_SUCCESS) {
        return false;
    }
    window->bytes = malloc(size);
    if (window->bytes != NULL) {
        sim_mem_read(window->bytes, first, size);
        window->is_known = sim_mem_is_known(first, size);
    }
    return window->bytes != NULL;
}

unsigned char *sim_window_at(const struct sim_window *window, CUdeviceptr address, size_t size)
{
    return address >= window->first && size <= window->size &&
                   address - window->first <= window->size - size
               ? window->bytes + (address - window->first)
               : NULL;
}

void sim_window_note(struct sim_window *window, uint64_t bytes, bool is_known)
{
    window->is_known = is_known && (window->is_known || bytes >= window->size);
}

void sim_window_close(struct sim_window *window)
{
    if (window->bytes != NULL && window->is_written) {
        sim_mem_write(window->first, window->bytes, window->size);
        sim_mem_set_known(window->first, window->size, window->is_known);
    }
    free(window->bytes);
    window->bytes = NULL;
}

void sim_windows_close(struct sim_window *windows, size_t count, bool done)
{
    for (size_t i = 0; i < count; i++) {
        windows[i].is_written &= done;
        sim_window_close(&windows[i]);
    }
}

bool sim_memory_fill(CUdeviceptr first, uint32_t pattern, size_t width, size_t bytes, int device)
{
    if ((pattern != 0 && bytes > SIM_WINDOW_BYTES) || sim_mem_kind(first) == SIM_MEM_PAGEABLE ||
        sim_mem_check(first, bytes, device, true) != CUDA_SUCCESS) {
        return false;
    }
    sim_mem_fill(first, pattern, (unsigned int)width, bytes);
    return true;
}

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
