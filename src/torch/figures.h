/* The figures of PyTorch's allocator: of the tensors that the pool serves and, for the peaks of
 * both together, what its native part has.
 *
 * Locking: spw_locks.tensors, held by the caller of every function unless its comment says
 * otherwise. */
#pragma once

#include "torch/abi.h"
#include "torch/library.h"

/* The figures that both parts have. */
enum spw_torch_figure {
    SPW_TORCH_ALLOCATION,
    SPW_TORCH_ACTIVE,
    SPW_TORCH_ALLOCATED_BYTES,
    SPW_TORCH_ACTIVE_BYTES,
    SPW_TORCH_REQUESTED_BYTES,
    SPW_TORCH_FIGURES
};

/* A tensor of `bytes`, `asked` of them by the program, was allocated (`sign` 1) or freed (-1).
 * Memory that is freed while another stream uses it stays active, until spw_torch_figures_inactive.
 */
void spw_torch_figures_count(int device, int sign, uint64_t bytes, uint64_t asked, bool active);
void spw_torch_figures_inactive(int device, uint64_t bytes);

/* The bytes of the tensors that are allocated, the native part's included. */
uint64_t spw_torch_figures_allocated(int device);

/* How much more was allocated, at the peak, than is now. */
uint64_t spw_torch_figures_below_peak(int device);

/* The bytes that are reserved for both parts: the pool's chunks on device and host, of which the
 * native part's segments are some. */
uint64_t spw_torch_figures_reserved(int device);

/* The bytes that the native part has reserved and does not use. */
uint64_t spw_torch_figures_idle(int device);

/* The native part has allocated or freed: `native` are its figures now. */
void spw_torch_figures_native(const struct spw_torch_row *row, int device, const void *native);

/* Adds the tensors to the native part's figures, which the program asked for. */
void spw_torch_figures_add(const struct spw_torch_row *row, int device, void *native);

/* The peaks begin again at the present figures, the sums at 0. */
void spw_torch_figures_reset_peaks(int device);
void spw_torch_figures_reset_accumulated(int device);
