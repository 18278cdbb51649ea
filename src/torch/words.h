/* The words of PyTorch's out-of-memory error.
 *
 * The native allocator refuses a request that the pool had no room for, with an error that counts
 * only its own memory. On its way to the program the error passes through our functions, which put
 * in the figures of both parts. */
#pragma once

#include <stdint.h>

#include "torch/library.h"

/* The bytes that PyTorch has allocated and reserved on the device of the thread's request. */
struct spw_torch_said {
    const struct spw_torch_library *library;
    uint64_t allocated, reserved;
};

extern _Thread_local struct spw_torch_said spw_torch_said
    __attribute__((tls_model("initial-exec")));

/* Stands first in a function that the error passes through. */
#define SPW_TORCH_PASSES_ERRORS __asm__(".cfi_personality 0x9b, spw_torch_words_place")
