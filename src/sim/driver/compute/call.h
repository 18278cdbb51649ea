/* One launch of a kernel: its arguments, and the memory that they point to.
 *
 * Locking: the simulator's lock (core/lock.h) is held. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cuda.h>

/* One parameter, by its place in the parameter buffer. */
struct sim_param {
    size_t offset;
    size_t size;
    bool is_word; /* a 64-bit value of its own, so it may be an address */
};

struct sim_call {
    const unsigned char *arguments; /* the parameter buffer */
    const struct sim_param *params;
    size_t param_count;
    uint64_t blocks, rows; /* of the grid: all, and in y */
    int device;
};

/* The argument of that number, of at least `size` bytes; NULL if it is shorter or there is none. */
const unsigned char *sim_call_argument(const struct sim_call *call, size_t number, size_t size);

/* Unaligned reads from an argument. */
uint32_t sim_read_u32(const unsigned char *from);
uint64_t sim_read_u64(const unsigned char *from);

/* The content of a range of memory, as a copy. */
struct sim_window {
    CUdeviceptr first;
    size_t size;
    unsigned char *bytes;
    bool is_written; /* to be written back */
    bool is_known;   /* all of the content is (memory/known.h) */
};

/* More than this is never computed with. */
#define SIM_WINDOW_BYTES ((size_t)16 << 20)

/* The outcome of a launch. */
enum sim_outcome_of_call {
    SIM_LEFT,     /* nothing: the arguments are not as they should be, or there are too many */
    SIM_CLEARED,  /* the results are zeros, and not known */
    SIM_COMPUTED, /* the results are known if all inputs are */
};

/* True if so many elements are computed: fewer if an input is not known, since that only serves to
 * let what does not depend on it come out right. */
bool sim_call_admits(uint64_t elements, bool is_known);

/* Copies a range that the device can access. False, with nothing to close, if it is too large, if
 * the device may not access it, or if host memory is out. */
bool sim_window_open(struct sim_window *window, CUdeviceptr first, size_t size, int device,
                     bool is_written);

/* The bytes at an address, which is in the window with `size` bytes behind it; else NULL. */
unsigned char *sim_window_at(const struct sim_window *window, CUdeviceptr address, size_t size);

/* Says that so many bytes were written, all that there are or some, from inputs that are known or
 * not. */
void sim_window_note(struct sim_window *window, uint64_t bytes, bool is_known);

/* Writes the copy back, if it is to be, says if it is known, and frees it. */
void sim_window_close(struct sim_window *window);

/* Closes windows, some of which may never have been opened. Writes nothing unless `done`. */
void sim_windows_close(struct sim_window *windows, size_t count, bool done);

/* Repeats the low `width` (1, 2 or 4) bytes of `pattern` over memory that the device can access.
 * False if it cannot, or if this would take too much host memory: zeros take none. */
bool sim_memory_fill(CUdeviceptr first, uint32_t pattern, size_t width, size_t bytes, int device);

/* PyTorch's OffsetCalculator (ATen/cuda/detail/OffsetCalculator.cuh): the byte offset in each of
 * some tensors of the element of a number. */
enum { SIM_OFFSET_DIMENSIONS = 25, SIM_OFFSET_TENSORS = 4 };

struct sim_offsets {
    size_t dimensions, tensors;
    uint32_t sizes[SIM_OFFSET_DIMENSIONS];
    uint32_t strides[SIM_OFFSET_DIMENSIONS][SIM_OFFSET_TENSORS];
};

/* Bytes of one for so many tensors. */
size_t sim_offsets_bytes(size_t tensors);

/* Reads one, of sim_offsets_bytes(). False if it is damaged. */
bool sim_offsets_read(const unsigned char *from, size_t tensors, struct sim_offsets *ret_offsets);

/* One for tensors without gaps, whose elements are of these sizes. */
struct sim_offsets sim_offsets_contiguous(size_t tensors, const size_t *element_bytes);

/* The offset of element `number` in one tensor. */
uint64_t sim_offsets_get(const struct sim_offsets *offsets, uint64_t number, size_t tensor);

/* The largest of all elements below `count`. */
uint64_t sim_offsets_last(const struct sim_offsets *offsets, uint64_t count, size_t tensor);

/* PyTorch's TensorInfo, whose sizes and strides have 32 or 64 bits
 * (ATen/cuda/detail/TensorInfo.cuh); strides are in elements. */
struct sim_info {
    CUdeviceptr data;
    size_t dimensions;
    uint32_t sizes[SIM_OFFSET_DIMENSIONS], strides[SIM_OFFSET_DIMENSIONS];
};

/* Reads the argument of that number. False if it is none, or if the tensor is empty or reaches
 * farther than SIM_WINDOW_BYTES. */
bool sim_info_read(const struct sim_call *call, size_t number, struct sim_info *ret_info);

/* The place of element `number`, in elements; of the last one; and how many there are. */
uint64_t sim_info_get(const struct sim_info *info, uint64_t number);
uint64_t sim_info_last(const struct sim_info *info);
uint64_t sim_info_count(const struct sim_info *info);
