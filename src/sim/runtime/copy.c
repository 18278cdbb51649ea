#include "sim/runtime/copy.h"

#include <stdbool.h>
#include <stddef.h>

#include "sim/runtime/entry.h"

/* The driver's memory types of the two sides of a copy. */
struct simrt_sides {
    CUmemorytype source;
    CUmemorytype target;
};

static cudaError_t sides_of(enum cudaMemcpyKind kind, struct simrt_sides *ret_sides)
{
    switch (kind) {
    case cudaMemcpyHostToHost:
        *ret_sides = (struct simrt_sides){CU_MEMORYTYPE_HOST, CU_MEMORYTYPE_HOST};
        return cudaSuccess;
    case cudaMemcpyHostToDevice:
        *ret_sides = (struct simrt_sides){CU_MEMORYTYPE_HOST, CU_MEMORYTYPE_DEVICE};
        return cudaSuccess;
    case cudaMemcpyDeviceToHost:
        *ret_sides = (struct simrt_sides){CU_MEMORYTYPE_DEVICE, CU_MEMORYTYPE_HOST};
        return cudaSuccess;
    case cudaMemcpyDeviceToDevice:
        *ret_sides = (struct simrt_sides){CU_MEMORYTYPE_DEVICE, CU_MEMORYTYPE_DEVICE};
        return cudaSuccess;
    case cudaMemcpyDefault:
        *ret_sides = (struct simrt_sides){CU_MEMORYTYPE_UNIFIED, CU_MEMORYTYPE_UNIFIED};
        return cudaSuccess;
    }
    return cudaErrorInvalidMemcpyDirection;
}

/* True if a copy is refused or empty, so that the driver is not called. */
static bool ends_early(size_t size, enum cudaMemcpyKind kind, cudaError_t *ret_error)
{
    bool known = (unsigned int)kind <= cudaMemcpyDefault;

    *ret_error = known ? cudaSuccess : cudaErrorInvalidMemcpyDirection;
    return !known || size == 0;
}

cudaError_t simrt_copy(bool ptsz, void *target, const void *source, size_t size,
                       enum cudaMemcpyKind kind)
{
    CUdeviceptr to = (CUdeviceptr)target;
    CUdeviceptr from = (CUdeviceptr)source;
    cudaError_t error;

    if (ends_early(size, kind, &error)) {
        return error;
    }
    switch (kind) {
    case cudaMemcpyHostToDevice:
        return simrt_error(simrt_driver.cuMemcpyHtoD[ptsz](to, source, size));
    case cudaMemcpyDeviceToHost:
        return simrt_error(simrt_driver.cuMemcpyDtoH[ptsz](target, from, size));
    case cudaMemcpyDeviceToDevice:
        return simrt_error(simrt_driver.cuMemcpyDtoD[ptsz](to, from, size));
    default:
        return simrt_error(simrt_driver.cuMemcpy[ptsz](to, from, size));
    }
}

cudaError_t simrt_copy_async(bool ptsz, void *target, const void *source, size_t size,
                             enum cudaMemcpyKind kind, cudaStream_t stream)
{
    CUdeviceptr to = (CUdeviceptr)target;
    CUdeviceptr from = (CUdeviceptr)source;
    cudaError_t error;

    if (ends_early(size, kind, &error)) {
        return error;
    }
    switch (kind) {
    case cudaMemcpyHostToDevice:
        return simrt_error(simrt_driver.cuMemcpyHtoDAsync[ptsz](to, source, size, stream));
    case cudaMemcpyDeviceToHost:
        return simrt_error(simrt_driver.cuMemcpyDtoHAsync[ptsz](target, from, size, stream));
    case cudaMemcpyDeviceToDevice:
        return simrt_error(simrt_driver.cuMemcpyDtoDAsync[ptsz](to, from, size, stream));
    default:
        return simrt_error(simrt_driver.cuMemcpyAsync[ptsz](to, from, size, stream));
    }
}

SIMRT_API_PTDS(cudaMemcpy, SIMRT_CONTEXT,
               (void *target, const void *source, size_t size, enum cudaMemcpyKind kind))
{
    return simrt_copy(ptsz, target, source, size, kind);
}

SIMRT_API_PTSZ(cudaMemcpyAsync, SIMRT_CONTEXT,
               (void *target, const void *source, size_t size, enum cudaMemcpyKind kind,
                cudaStream_t stream))
{
    return simrt_copy_async(ptsz, target, source, size, kind, stream);
}

/* The primary contexts of both devices of a copy between peers. */
static cudaError_t peer_contexts(int source, int target, CUcontext *ret_source,
                                 CUcontext *ret_target)
{
    cudaError_t error = simrt_context_primary(source, ret_source);

    return error != cudaSuccess ? error : simrt_context_primary(target, ret_target);
}

SIMRT_API(cudaMemcpyPeer, SIMRT_CONTEXT,
          (void *target, int target_device, const void *source, int source_device, size_t size))
{
    CUcontext from;
    CUcontext to;
    cudaError_t error = peer_contexts(source_device, target_device, &from, &to);

    if (error != cudaSuccess || size == 0) {
        return error;
    }
    return simrt_error(
        simrt_driver.cuMemcpyPeer((CUdeviceptr)target, to, (CUdeviceptr)source, from, size));
}

SIMRT_API(cudaMemcpyPeerAsync, SIMRT_CONTEXT,
          (void *target, int target_device, const void *source, int source_device, size_t size,
           cudaStream_t stream))
{
    CUcontext from;
    CUcontext to;
    cudaError_t error = peer_contexts(source_device, target_device, &from, &to);

    if (error != cudaSuccess || size == 0) {
        return error;
    }
    return simrt_error(simrt_driver.cuMemcpyPeerAsync((CUdeviceptr)target, to, (CUdeviceptr)source,
                                                      from, size, stream));
}

static cudaError_t copy_2d(void *target, size_t target_pitch, const void *source,
                           size_t source_pitch, size_t width, size_t height,
                           enum cudaMemcpyKind kind, CUDA_MEMCPY2D *ret_copy)
{
    struct simrt_sides sides;
    cudaError_t error = sides_of(kind, &sides);

    if (error != cudaSuccess) {
        return error;
    }
    if (width > target_pitch || width > source_pitch) {
        return cudaErrorInvalidPitchValue;
    }
    *ret_copy = (CUDA_MEMCPY2D){
        .srcMemoryType = sides.source,
        .srcHost = source,
        .srcDevice = (CUdeviceptr)source,
        .srcPitch = source_pitch,
        .dstMemoryType = sides.target,
        .dstHost = target,
        .dstDevice = (CUdeviceptr)target,
        .dstPitch = target_pitch,
        .WidthInBytes = width,
        .Height = height,
    };
    return cudaSuccess;
}

SIMRT_API_PTDS(cudaMemcpy2D, SIMRT_CONTEXT,
               (void *target, size_t target_pitch, const void *source, size_t source_pitch,
                size_t width, size_t height, enum cudaMemcpyKind kind))
{
    CUDA_MEMCPY2D copy;
    cudaError_t error =
        copy_2d(target, target_pitch, source, source_pitch, width, height, kind, &copy);

    if (error != cudaSuccess || width == 0 || height == 0) {
        return error;
    }
    return simrt_error(simrt_driver.cuMemcpy2DUnaligned[ptsz](&copy));
}

SIMRT_API_PTSZ(cudaMemcpy2DAsync, SIMRT_CONTEXT,
               (void *target, size_t target_pitch, const void *source, size_t source_pitch,
                size_t width, size_t height, enum cudaMemcpyKind kind, cudaStream_t stream))
{
    CUDA_MEMCPY2D copy;
    cudaError_t error =
        copy_2d(target, target_pitch, source, source_pitch, width, height, kind, &copy);

    if (error != cudaSuccess || width == 0 || height == 0) {
        return error;
    }
    return simrt_error(simrt_driver.cuMemcpy2DAsync[ptsz](&copy, stream));
}

cudaError_t simrt_copy_3d(const struct cudaMemcpy3DParms *parms, CUDA_MEMCPY3D *ret_copy)
{
    struct simrt_sides sides;

    if (parms == NULL) {
        return cudaErrorInvalidValue;
    }
    if (parms->srcArray != NULL || parms->dstArray != NULL) {
        return cudaErrorNotSupported;
    }
    if (parms->srcPtr.ptr == NULL || parms->dstPtr.ptr == NULL) {
        return cudaErrorInvalidValue;
    }
    cudaError_t error = sides_of(parms->kind, &sides);
    if (error != cudaSuccess) {
        return error;
    }
    if (parms->extent.width > parms->srcPtr.pitch || parms->extent.width > parms->dstPtr.pitch) {
        return cudaErrorInvalidPitchValue;
    }
    *ret_copy = (CUDA_MEMCPY3D){
        .srcXInBytes = parms->srcPos.x,
        .srcY = parms->srcPos.y,
        .srcZ = parms->srcPos.z,
        .srcMemoryType = sides.source,
        .srcHost = parms->srcPtr.ptr,
        .srcDevice = (CUdeviceptr)parms->srcPtr.ptr,
        .srcPitch = parms->srcPtr.pitch,
        .srcHeight = parms->srcPtr.ysize,
        .dstXInBytes = parms->dstPos.x,
        .dstY = parms->dstPos.y,
        .dstZ = parms->dstPos.z,
        .dstMemoryType = sides.target,
        .dstHost = parms->dstPtr.ptr,
        .dstDevice = (CUdeviceptr)parms->dstPtr.ptr,
        .dstPitch = parms->dstPtr.pitch,
        .dstHeight = parms->dstPtr.ysize,
        .WidthInBytes = parms->extent.width,
        .Height = parms->extent.height,
        .Depth = parms->extent.depth,
    };
    return cudaSuccess;
}

static enum cudaMemcpyKind kind_of(CUmemorytype source, CUmemorytype target)
{
    if (source == CU_MEMORYTYPE_UNIFIED || target == CU_MEMORYTYPE_UNIFIED) {
        return cudaMemcpyDefault;
    }
    if (source == CU_MEMORYTYPE_HOST) {
        return target == CU_MEMORYTYPE_HOST ? cudaMemcpyHostToHost : cudaMemcpyHostToDevice;
    }
    return target == CU_MEMORYTYPE_HOST ? cudaMemcpyDeviceToHost : cudaMemcpyDeviceToDevice;
}

void simrt_copy_3d_parms(const CUDA_MEMCPY3D *copy, struct cudaMemcpy3DParms *ret_parms)
{
    *ret_parms = (struct cudaMemcpy3DParms){
        .srcPos = {copy->srcXInBytes, copy->srcY, copy->srcZ},
        .srcPtr = {.ptr = copy->srcMemoryType == CU_MEMORYTYPE_HOST ? (void *)copy->srcHost
                                                                    : (void *)copy->srcDevice,
                   .pitch = copy->srcPitch,
                   .xsize = copy->WidthInBytes,
                   .ysize = copy->srcHeight},
        .dstPos = {copy->dstXInBytes, copy->dstY, copy->dstZ},
        .dstPtr = {.ptr = copy->dstMemoryType == CU_MEMORYTYPE_HOST ? copy->dstHost
                                                                    : (void *)copy->dstDevice,
                   .pitch = copy->dstPitch,
                   .xsize = copy->WidthInBytes,
                   .ysize = copy->dstHeight},
        .extent = {copy->WidthInBytes, copy->Height, copy->Depth},
        .kind = kind_of(copy->srcMemoryType, copy->dstMemoryType),
    };
}

cudaError_t simrt_copy_1d(void *target, const void *source, size_t size, enum cudaMemcpyKind kind,
                          CUDA_MEMCPY3D *ret_copy)
{
    struct cudaMemcpy3DParms parms = {
        .srcPtr = {.ptr = (void *)source, .pitch = size, .xsize = size, .ysize = 1},
        .dstPtr = {.ptr = target, .pitch = size, .xsize = size, .ysize = 1},
        .extent = {.width = size, .height = 1, .depth = 1},
        .kind = kind,
    };

    return simrt_copy_3d(&parms, ret_copy);
}

static bool is_empty(struct cudaExtent extent)
{
    return extent.width == 0 || extent.height == 0 || extent.depth == 0;
}

/* The two functions for one kind of three-dimensional copy: on the default stream, and on a given
 * stream. */
#define COPY_3D(name, parms_type, copy_type, describe)                                             \
    SIMRT_API_PTDS(cuda##name, SIMRT_CONTEXT, (const struct parms_type *parms))                    \
    {                                                                                              \
        copy_type copy;                                                                            \
        cudaError_t error = describe(parms, &copy);                                                \
        if (error != cudaSuccess || is_empty(parms->extent)) {                                     \
            return error;                                                                          \
        }                                                                                          \
        return simrt_error(simrt_driver.cu##name[ptsz](&copy));                                    \
    }                                                                                              \
    SIMRT_API_PTSZ(cuda##name##Async, SIMRT_CONTEXT,                                               \
                   (const struct parms_type *parms, cudaStream_t stream))                          \
    {                                                                                              \
        copy_type copy;                                                                            \
        cudaError_t error = describe(parms, &copy);                                                \
        if (error != cudaSuccess || is_empty(parms->extent)) {                                     \
            return error;                                                                          \
        }                                                                                          \
        return simrt_error(simrt_driver.cu##name##Async[ptsz](&copy, stream));                     \
    }

COPY_3D(Memcpy3D, cudaMemcpy3DParms, CUDA_MEMCPY3D, simrt_copy_3d)

static cudaError_t copy_3d_peer(const struct cudaMemcpy3DPeerParms *parms,
                                CUDA_MEMCPY3D_PEER *ret_copy)
{
    CUDA_MEMCPY3D copy;
    CUcontext from;
    CUcontext to;

    if (parms == NULL) {
        return cudaErrorInvalidValue;
    }
    struct cudaMemcpy3DParms plain = {
        .srcArray = parms->srcArray,
        .srcPos = parms->srcPos,
        .srcPtr = parms->srcPtr,
        .dstArray = parms->dstArray,
        .dstPos = parms->dstPos,
        .dstPtr = parms->dstPtr,
        .extent = parms->extent,
        .kind = cudaMemcpyDeviceToDevice,
    };
    cudaError_t error = simrt_copy_3d(&plain, &copy);
    if (error == cudaSuccess) {
        error = peer_contexts(parms->srcDevice, parms->dstDevice, &from, &to);
    }
    if (error != cudaSuccess) {
        return error;
    }
    *ret_copy = (CUDA_MEMCPY3D_PEER){
        .srcXInBytes = copy.srcXInBytes,
        .srcY = copy.srcY,
        .srcZ = copy.srcZ,
        .srcMemoryType = copy.srcMemoryType,
        .srcDevice = copy.srcDevice,
        .srcContext = from,
        .srcPitch = copy.srcPitch,
        .srcHeight = copy.srcHeight,
        .dstXInBytes = copy.dstXInBytes,
        .dstY = copy.dstY,
        .dstZ = copy.dstZ,
        .dstMemoryType = copy.dstMemoryType,
        .dstDevice = copy.dstDevice,
        .dstContext = to,
        .dstPitch = copy.dstPitch,
        .dstHeight = copy.dstHeight,
        .WidthInBytes = copy.WidthInBytes,
        .Height = copy.Height,
        .Depth = copy.Depth,
    };
    return cudaSuccess;
}

COPY_3D(Memcpy3DPeer, cudaMemcpy3DPeerParms, CUDA_MEMCPY3D_PEER, copy_3d_peer)

#if CUDART_VERSION >= 12080
_Static_assert(offsetof(struct cudaMemcpy3DBatchOp, extent) ==
                   offsetof(CUDA_MEMCPY3D_BATCH_OP, extent),
               "operations of a batch are the same");
#endif
