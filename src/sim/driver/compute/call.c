#include "sim/driver/compute/call.h"

#include <stdlib.h>
#include <string.h>

#include "sim/driver/memory/content.h"

/* The maximum number of elements of a launch that is computed: with known inputs, and with unknown
 * inputs. */
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

bool sim_call_number(const struct sim_call *call, size_t number, uint64_t *ret_value)
{
    const unsigned char *argument = sim_call_argument(call, number, sizeof(uint32_t));
    uint64_t value;

    if (argument == NULL) {
        return false;
    }
    value = call->params[number].size >= sizeof(value) ? sim_read_u64(argument)
                                                       : sim_read_u32(argument);
    *ret_value = value;
    return value <= INT64_MAX;
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

bool sim_call_window(const struct sim_call *call, size_t number, size_t size, bool is_written,
                     struct sim_window *ret_window)
{
    const unsigned char *address = sim_call_argument(call, number, sizeof(CUdeviceptr));

    return address != NULL &&
           sim_window_open(ret_window, sim_read_u64(address), size, call->device, is_written);
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
