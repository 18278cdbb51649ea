/* Helpers of the kernels whose results the simulator computes. It does not know which kernels there
 * are.
 *
 *   call     one launch: its arguments, and the memory behind them
 *   choice   sizes that the user chooses, because the simulator does not know them
 *
 * Locking: the simulator's lock (core/lock.h) is held. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cuda.h>

/* One parameter, described by its place in the parameter buffer. */
struct sim_param {
    size_t offset;
    size_t size;
    bool is_word; /* a single 64-bit value, possibly an address */
};

struct sim_call {
    const unsigned char *arguments; /* the parameter buffer */
    const struct sim_param *params;
    size_t param_count;
    uint64_t blocks, rows; /* number of blocks in the grid, and the grid's size in y */
    int device;
};

/* The argument with that number. NULL if there is no such argument, or if the argument is shorter
 * than `size` bytes. */
const unsigned char *sim_call_argument(const struct sim_call *call, size_t number, size_t size);

/* Reads an argument as a number. An argument of 8 bytes or more is read as a signed number of 64
 * bits, a shorter argument as an unsigned number of 32 bits. False if there is no such argument, or
 * if the number is negative. */
bool sim_call_number(const struct sim_call *call, size_t number, uint64_t *ret_value);

/* Unaligned reads from an argument. */
uint32_t sim_read_u32(const unsigned char *from);
uint64_t sim_read_u64(const unsigned char *from);

/* The content of a range of memory, as a copy. */
struct sim_window {
    CUdeviceptr first;
    size_t size;
    unsigned char *bytes;
    bool is_written; /* to be written back */
    bool is_known;   /* all of the content is known (memory/known.h) */
};

/* The maximum size of a window, in bytes. */
#define SIM_WINDOW_BYTES ((size_t)16 << 20)

/* The outcome of a launch. */
enum sim_outcome_of_call {
    SIM_LEFT,     /* not computed: the arguments are unexpected, or the launch is too large */
    SIM_CLEARED,  /* the results were set to zero and are unknown */
    SIM_COMPUTED, /* computed; the results are known if all inputs are known */
};

/* True if a launch with this number of elements is computed. If an input is unknown, the maximum is
 * smaller, because only the results that do not depend on this input are useful. */
bool sim_call_admits(uint64_t elements, bool is_known);

/* Opens a window on a range, and copies the range. Returns false, with nothing to close, if the
 * range is larger than SIM_WINDOW_BYTES, if the device may not access the range, or if host memory
 * is exhausted. */
bool sim_window_open(struct sim_window *window, CUdeviceptr first, size_t size, int device,
                     bool is_written);

/* As sim_window_open(), for the memory that an argument points to. */
bool sim_call_window(const struct sim_call *call, size_t number, size_t size, bool is_written,
                     struct sim_window *ret_window);

/* The copied bytes at an address. NULL unless the window contains all `size` bytes that begin at
 * this address. */
unsigned char *sim_window_at(const struct sim_window *window, CUdeviceptr address, size_t size);

/* Updates window->is_known after a write of `bytes` to the window. `is_known`: true if all inputs
 * of the write are known. */
void sim_window_note(struct sim_window *window, uint64_t bytes, bool is_known);

/* Frees the copy. If the window is_written, first writes the copy back and marks the range as known
 * or unknown. */
void sim_window_close(struct sim_window *window);

/* Closes several windows. A window that was never opened must be zeroed. The windows are written
 * back only if `done` is true. */
void sim_windows_close(struct sim_window *windows, size_t count, bool done);

/* Repeats the low `width` (1, 2 or 4) bytes of `pattern` over a range. False if the device may not
 * access the range, or if the range is larger than SIM_WINDOW_BYTES and `pattern` is not 0. */
bool sim_memory_fill(CUdeviceptr first, uint32_t pattern, size_t width, size_t bytes, int device);
