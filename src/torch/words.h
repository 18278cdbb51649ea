/* The text of PyTorch's out-of-memory error.
 *
 * If the pool has no room for a request, the native allocator refuses the request with an error
 * whose text counts only its own memory. On its way to the program, this error passes through
 * functions of spillway. They replace the figures in the text by those of both parts. */
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

/* Must be the first statement of a function that the error passes through. */
#define SPW_TORCH_PASSES_ERRORS __asm__(".cfi_personality 0x9b, spw_torch_words_place")
