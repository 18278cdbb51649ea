/* The words of PyTorch's out-of-memory error.
 *
 * The native allocator refuses a request that the pool had no room for, and words the error: it
 * counts its own memory in it. On its way to the program the error passes through our functions,
 * which put the figures of both parts in. */
#pragma once

#include <stdint.h>

#include "torch/library.h"

/* What PyTorch has allocated and reserved on the device that the thread asked for memory of. */
struct spw_torch_said {
    const struct spw_torch_library *library;
    uint64_t allocated, reserved;
};

extern _Thread_local struct spw_torch_said spw_torch_said
    __attribute__((tls_model("initial-exec")));

/* To stand first in a function through which the error passes. */
#define SPW_TORCH_PASSES_ERRORS __asm__(".cfi_personality 0x9b, spw_torch_words_place")
