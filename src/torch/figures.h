/* The figures of PyTorch's allocator. They cover two parts: the tensors in the pool, and the native
 * allocator. Both must be known to find the peaks of their sum.
 *
 * Locking: the caller of every function holds spw_locks.tensors. */
#pragma once

#include "torch/abi.h"
#include "torch/state.h"

/* Count a tensor of `bytes`; the program asked for `asked` of them. The memory of a freed tensor
 * stays active until the third function is called: at once, or when no other stream uses it. */
void spw_torch_figures_new(int device, uint64_t bytes, uint64_t asked);
void spw_torch_figures_freed(int device, uint64_t bytes, uint64_t asked);
void spw_torch_figures_inactive(int device, uint64_t bytes);

/* Returns the bytes of all allocated tensors, including those of the native allocator. */
uint64_t spw_torch_figures_allocated(int device);

/* Returns by how much the allocated bytes are below their peak. */
uint64_t spw_torch_figures_below_peak(int device);

/* Returns the bytes that both parts have reserved. These are the pool's chunks on device and host,
 * which contain the native allocator's segments. */
uint64_t spw_torch_figures_reserved(int device);

/* Returns the bytes that the native allocator has reserved and does not use. */
uint64_t spw_torch_figures_idle(int device);

/* Replaces the native allocator's figures by `native`. Called after the native allocator has
 * allocated or freed. */
void spw_torch_figures_native(const struct spw_torch_row *row, int device, const void *native);

/* Adds the figures of the tensors to the native allocator's figures `native`, which the program
 * will read. */
void spw_torch_figures_add(const struct spw_torch_row *row, int device, void *native);

/* Reset the peaks to the current figures, and the sums to 0. */
void spw_torch_figures_reset_peaks(int device);
void spw_torch_figures_reset_accumulated(int device);
