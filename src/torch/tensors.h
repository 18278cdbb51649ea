/* The tensors that the pool serves, by address. A tensor is listed from its allocation until no
 * stream uses its memory.
 *
 * If a tensor was used on streams other than its own (record_stream), it is held when it is freed.
 * Its memory goes back to the pool when these streams have completed the work that was submitted
 * before the free. Events show when that is the case, as in PyTorch's native allocator. No event is
 * recorded while a capture is open.
 *
 * Locking: takes spw_locks.tensors. */
#pragma once

#include "serve/direct.h"

#include <stdbool.h>
#include <stdint.h>

/* One tensor. */
struct spw_torch_tensor {
    uint64_t address;
    uint64_t asked; /* size that the program asked for */
    uint64_t bytes; /* size after rounding up */
    int device;
    struct spw_serve_order order; /* the place of the allocation in the order of work */
};

/* Enters a tensor. Returns false if there is no memory for the record. */
bool spw_torch_tensors_add(const struct spw_torch_tensor *tensor);

/* Removes the tensor at an address, and copies it to *ret_tensor. Gives its memory back to the
 * pool, or holds it. Returns false if there is no tensor at the address. */
bool spw_torch_tensors_free(uint64_t address, struct spw_torch_tensor *ret_tensor);

/* Copies the tensor that begins at an address. Returns false if there is none. */
bool spw_torch_tensors_find(uint64_t address, struct spw_torch_tensor *ret_tensor);

/* Records that the tensor at an address is used on a stream. Returns false if there is no tensor at
 * the address. */
bool spw_torch_tensors_use(uint64_t address, CUstream stream);

/* Gives back the memory of held tensors whose streams are done. Cheap if no tensor is held. With
 * `wait`, waits for the streams. Does nothing while a capture is open. Returns true if any memory
 * was given back. */
bool spw_torch_tensors_settle(bool wait);

/* Calls `visit` for each tensor, with the lock held. */
void spw_torch_tensors_each(void (*visit)(const struct spw_torch_tensor *tensor, void *context),
                            void *context);
