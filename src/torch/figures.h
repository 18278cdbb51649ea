/* The figures of PyTorch's allocator: those of the tensors in the pool, and those of its native
 * part, which the peaks of both together need.
 *
 * Locking: the caller of every function holds spw_locks.tensors. */
#pragma once

#include "torch/abi.h"
#include "torch/state.h"

/* Counts a tensor that was allocated (`sign` 1) or freed (-1). It has `bytes`; the program asked
 * for `asked` of them. Memory that is freed while another stream uses it stays active, until
 * spw_torch_figures_inactive. */
void spw_torch_figures_count(int device, int sign, uint64_t bytes, uint64_t asked, bool active);
void spw_torch_figures_inactive(int device, uint64_t bytes);

/* The bytes of all allocated tensors, including those of the native part. */
uint64_t spw_torch_figures_allocated(int device);

/* The peak of the allocated bytes, less the bytes allocated now. */
uint64_t spw_torch_figures_below_peak(int device);

/* The bytes that are reserved for both parts: the pool's chunks on device and host, which contain
 * the native part's segments. */
uint64_t spw_torch_figures_reserved(int device);

/* The bytes that the native part has reserved and does not use. */
uint64_t spw_torch_figures_idle(int device);

/* Replaces the native part's figures by `native`, after it allocated or freed. */
void spw_torch_figures_native(const struct spw_torch_row *row, int device, const void *native);

/* Adds the tensors to the native part's figures `native`, for the program. */
void spw_torch_figures_add(const struct spw_torch_row *row, int device, void *native);

/* Reset the peaks to the present figures, and the sums to 0. */
void spw_torch_figures_reset_peaks(int device);
void spw_torch_figures_reset_accumulated(int device);
