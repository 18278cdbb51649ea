/* The tensors that the pool serves, by address, from the allocation until no stream uses their
 * memory.
 *
 * A tensor that was used on other streams than its own (record_stream) is held when it is freed:
 * its memory goes back to the pool when those streams have done their earlier work. Events show
 * that, as in PyTorch's native allocator. No event is recorded while a capture is open.
 *
 * Locking: takes spw_locks.tensors. */
#pragma once

#include "serve/direct.h"

#include <stdbool.h>
#include <stdint.h>

/* One tensor. */
struct spw_torch_tensor {
    uint64_t address;
    uint64_t asked; /* by the program */
    uint64_t bytes; /* rounded up */
    int device;
    struct spw_serve_order order; /* of its allocation */
};

/* Enters a tensor. False without memory. */
bool spw_torch_tensors_add(const struct spw_torch_tensor *tensor);

/* Takes out the tensor at an address, copies it, and gives its memory back or holds it. False when
 * there is none. */
bool spw_torch_tensors_free(uint64_t address, struct spw_torch_tensor *ret_tensor);

/* True if a tensor begins at the address; copies it. */
bool spw_torch_tensors_find(uint64_t address, struct spw_torch_tensor *ret_tensor);

/* Notes that the tensor is used on a stream. False if there is none at the address. */
bool spw_torch_tensors_use(uint64_t address, CUstream stream);

/* Gives back the memory of tensors whose streams are done; cheap when none is held. With `wait`,
 * waits for them. Does nothing while a capture is open. True if any was given back. */
bool spw_torch_tensors_settle(bool wait);

/* Calls `visit` for each tensor, under the lock. */
void spw_torch_tensors_each(void (*visit)(const struct spw_torch_tensor *tensor, void *context),
                            void *context);
