/* CUDA IPC of tensors (torch.multiprocessing). */
#pragma once

#include "torch/library.h"
#include "torch/tensors.h"

typedef void *spw_torch_share_function(void *ret, struct spw_torch_object *self, void *memory);
typedef void *spw_torch_raw_alloc_function(struct spw_torch_object *self, size_t bytes);

/* Fills in a ShareableHandle of a tensor. The native allocator first makes a ShareableHandle for
 * memory of its own, in the form of its version; then the driver's handle in it is replaced. False
 * when the tensor cannot be shared. */
bool spw_torch_share(const struct spw_torch_library *library, const struct spw_torch_tensor *tensor,
                     struct spw_torch_shareable *ret_handle);
