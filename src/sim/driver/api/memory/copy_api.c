/* Exported functions for one-dimensional copies. */
#include "sim/driver/api/memory/copy_submit.h"

#include "sim/driver/api/entry.h"
#include "sim/driver/core/context.h"
#include "sim/driver/core/sim_options.h"
#include "sim/driver/memory/content.h"

/* The kind of an address, by the function's name: device memory, or memory of any kind. */
enum { DEVICE = false, ANY = true };

static CUresult linear(bool ptsz, CUstream hStream, struct sim_copy copy, enum sim_copy_mode mode)
{
    struct sim_stream *stream;
    CUresult result = sim_stream_resolve(hStream, ptsz, &stream);

    sim_note("dst=%#llx src=%#llx size=%zu", (unsigned long long)copy.dst.address,
             (unsigned long long)copy.src.address, copy.width);
    return result == CUDA_SUCCESS ? sim_copy_submit(stream, &copy, mode) : result;
}

/* Two functions that copy between addresses of the given kinds: on the default stream, and on a
 * given stream. */
#define COPY(name, async, to_type, to_kind, from_type, from_kind)                                  \
    SIM_API_PTDS(name, SIM_CONTEXT, (to_type dst, from_type src, size_t ByteCount))                \
    {                                                                                              \
        return linear(                                                                             \
            ptsz, NULL,                                                                            \
            sim_copy_linear((CUdeviceptr)dst, (CUdeviceptr)src, ByteCount, to_kind, from_kind),    \
            SIM_COPY_SYNC);                                                                        \
    }                                                                                              \
    SIM_API_PTSZ(async, SIM_CONTEXT,                                                               \
                 (to_type dst, from_type src, size_t ByteCount, CUstream hStream))                 \
    {                                                                                              \
        return linear(                                                                             \
            ptsz, hStream,                                                                         \
            sim_copy_linear((CUdeviceptr)dst, (CUdeviceptr)src, ByteCount, to_kind, from_kind),    \
            SIM_COPY_ASYNC);                                                                       \
    }

COPY(cuMemcpy, cuMemcpyAsync, CUdeviceptr, ANY, CUdeviceptr, ANY)
COPY(cuMemcpyHtoD_v2, cuMemcpyHtoDAsync_v2, CUdeviceptr, DEVICE, const void *, ANY)
COPY(cuMemcpyDtoH_v2, cuMemcpyDtoHAsync_v2, void *, ANY, CUdeviceptr, DEVICE)
COPY(cuMemcpyDtoD_v2, cuMemcpyDtoDAsync_v2, CUdeviceptr, DEVICE, CUdeviceptr, DEVICE)

/* True if the context is on the device that the address belongs to. It is not documented whether a
 * driver checks this. */
static bool is_owner(CUcontext ctx, CUdeviceptr address)
{
    return sim_options()->reach == SPW_REACH_ANY || sim_mem_device(address) == ctx->device->ordinal;
}

static CUresult peer(bool ptsz, CUstream hStream, struct sim_copy copy, CUcontext dst_ctx,
                     CUcontext src_ctx, enum sim_copy_mode mode)
{
    if (!sim_ctx_is_live(dst_ctx) || !sim_ctx_is_live(src_ctx)) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    if (!is_owner(dst_ctx, copy.dst.address) || !is_owner(src_ctx, copy.src.address)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    copy.peer = true;
    return linear(ptsz, hStream, copy, mode);
}

SIM_API_PTDS(cuMemcpyPeer, SIM_CONTEXT,
             (CUdeviceptr dstDevice, CUcontext dstContext, CUdeviceptr srcDevice,
              CUcontext srcContext, size_t ByteCount))
{
    return peer(ptsz, NULL, sim_copy_linear(dstDevice, srcDevice, ByteCount, DEVICE, DEVICE),
                dstContext, srcContext, SIM_COPY_SYNC);
}

SIM_API_PTSZ(cuMemcpyPeerAsync, SIM_CONTEXT,
             (CUdeviceptr dstDevice, CUcontext dstContext, CUdeviceptr srcDevice,
              CUcontext srcContext, size_t ByteCount, CUstream hStream))
{
    return peer(ptsz, hStream, sim_copy_linear(dstDevice, srcDevice, ByteCount, DEVICE, DEVICE),
                dstContext, srcContext, SIM_COPY_ASYNC);
}

/* Each copy is a separate operation. *ret_failed: index of the first refused copy; NULL for version
 * 2 of the function, which does not return it. The attributes are hints. */
static CUresult batch(bool ptsz, CUstream hStream, const CUdeviceptr *dsts, const CUdeviceptr *srcs,
                      const size_t *sizes, size_t count, size_t *ret_failed)
{
    if (dsts == NULL || srcs == NULL || sizes == NULL || count == 0 || (hStream == NULL && !ptsz) ||
        hStream == CU_STREAM_LEGACY) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    for (size_t i = 0; i < count; i++) {
        CUresult result = linear(
            ptsz, hStream, sim_copy_linear(dsts[i], srcs[i], sizes[i], ANY, ANY), SIM_COPY_ASYNC);

        if (result != CUDA_SUCCESS) {
            if (ret_failed != NULL) {
                *ret_failed = i;
            }
            return result;
        }
    }
    return CUDA_SUCCESS;
}

SIM_API_PTSZ(cuMemcpyBatchAsync, SIM_CONTEXT,
             (CUdeviceptr * dsts, CUdeviceptr *srcs, size_t *sizes, size_t count,
              CUmemcpyAttributes *attrs, size_t *attrsIdxs, size_t numAttrs, size_t *failIdx,
              CUstream hStream))
{
    if (attrs == NULL || attrsIdxs == NULL || numAttrs == 0 || numAttrs > count) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    return batch(ptsz, hStream, dsts, srcs, sizes, count, failIdx);
}

SIM_API_PTSZ(cuMemcpyBatchAsync_v2, SIM_CONTEXT,
             (CUdeviceptr * dsts, CUdeviceptr *srcs, size_t *sizes, size_t count,
              CUmemcpyAttributes *attrs, size_t *attrsIdxs, size_t numAttrs, CUstream hStream))
{
    if (attrs == NULL || attrsIdxs == NULL || numAttrs == 0 || numAttrs > count) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    return batch(ptsz, hStream, dsts, srcs, sizes, count, NULL);
}
