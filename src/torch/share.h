/* CUDA IPC of tensors (torch.multiprocessing). */
#pragma once

#include "torch/library.h"
#include "torch/tensors.h"

typedef void *spw_torch_share_function(void *ret, struct spw_torch_object *self, void *memory);
typedef void *spw_torch_raw_alloc_function(struct spw_torch_object *self, size_t bytes);

/* Makes a ShareableHandle for a tensor. First, the native allocator makes a ShareableHandle for
 * memory of its own, so that the result has the form of its version. Then the driver's handle in
 * the result is replaced. Returns false if the tensor cannot be shared. */
bool spw_torch_share(const struct spw_torch_library *library, const struct spw_torch_tensor *tensor,
                     struct spw_torch_shareable *ret_handle);
