/* Copies, and the driver's descriptions of copies, which graph nodes use too.
 *
 * Locking: none; the functions keep no state. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include <cuda.h>
#include <cuda_runtime_api.h>

/* Copies `size` bytes with the driver's function for the direction `kind`, on the default stream or
 * on `stream`. `ptsz` selects the driver's per-thread-default-stream variant. A copy of 0 bytes
 * does nothing. Errors: cudaErrorInvalidMemcpyDirection, or the driver's. */
cudaError_t simrt_copy(bool ptsz, void *target, const void *source, size_t size,
                       enum cudaMemcpyKind kind);
cudaError_t simrt_copy_async(bool ptsz, void *target, const void *source, size_t size,
                             enum cudaMemcpyKind kind, cudaStream_t stream);

/* Converts a three-dimensional copy to the driver's description. Errors: cudaErrorInvalidValue if a
 * side has no memory or more than one, cudaErrorInvalidMemcpyDirection, cudaErrorInvalidPitchValue
 * for rows longer than their pitch, cudaErrorNotSupported for arrays, which are not simulated. */
cudaError_t simrt_copy_3d(const struct cudaMemcpy3DParms *parms, CUDA_MEMCPY3D *ret_copy);

/* Converts the driver's description of a copy to the runtime's. */
void simrt_copy_3d_parms(const CUDA_MEMCPY3D *copy, struct cudaMemcpy3DParms *ret_parms);

/* Describes a copy of `size` bytes as a three-dimensional copy. Errors:
 * cudaErrorInvalidMemcpyDirection. */
cudaError_t simrt_copy_1d(void *target, const void *source, size_t size, enum cudaMemcpyKind kind,
                          CUDA_MEMCPY3D *ret_copy);
