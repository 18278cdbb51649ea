/* Stream-ordered hints about managed memory. The arguments are checked, but the hints have no
 * effect. */
#include "sim/driver/api/entry.h"
#include "sim/driver/core/device.h"
#include "sim/driver/graph/submit.h"
#include "sim/driver/memory/content.h"

static CUresult check_location(const CUmemLocation *location)
{
    switch ((int)location->type) {
    case CU_MEM_LOCATION_TYPE_DEVICE:
        return sim_device_get(location->id) == NULL ? CUDA_ERROR_INVALID_DEVICE : CUDA_SUCCESS;
    case CU_MEM_LOCATION_TYPE_HOST:
    case CU_MEM_LOCATION_TYPE_HOST_NUMA:
    case CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT:
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

/* Submits an operation without effect on managed memory. */
static CUresult hint(struct sim_stream *stream, CUdeviceptr address, size_t size)
{
    struct sim_op *op;
    CUresult result;

    if (size == 0 || sim_mem_kind(address) != SIM_MEM_MANAGED) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    op = sim_op_new_empty(sim_stream_device(stream));
    if (op == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    result = sim_op_add_span(op, (struct sim_span){address, size, false, true});
    if (result == CUDA_SUCCESS && sim_op_check(op) != CUDA_SUCCESS) {
        result = CUDA_ERROR_INVALID_VALUE;
    }
    if (result != CUDA_SUCCESS) {
        sim_op_unref(op);
        return result;
    }
    return sim_submit_new(stream, op);
}

static CUresult prefetch(bool ptsz, CUstream hStream, CUdeviceptr address, size_t size,
                         const CUmemLocation *location)
{
    struct sim_stream *stream;
    CUresult result = sim_stream_resolve(hStream, ptsz, &stream);

    if (result == CUDA_SUCCESS) {
        result = check_location(location);
    }
    return result == CUDA_SUCCESS ? hint(stream, address, size) : result;
}

SIM_API_PTSZ(cuMemPrefetchAsync, SIM_CONTEXT,
             (CUdeviceptr devPtr, size_t count, CUdevice dstDevice, CUstream hStream))
{
    CUmemLocation location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = dstDevice};

    if (dstDevice == CU_DEVICE_CPU) {
        location.type = CU_MEM_LOCATION_TYPE_HOST;
    }
    return prefetch(ptsz, hStream, devPtr, count, &location);
}

SIM_API_PTSZ(cuMemPrefetchAsync_v2, SIM_CONTEXT,
             (CUdeviceptr devPtr, size_t count, CUmemLocation location, unsigned int flags,
              CUstream hStream))
{
    return flags != 0 ? CUDA_ERROR_INVALID_VALUE
                      : prefetch(ptsz, hStream, devPtr, count, &location);
}

static CUresult batch(bool ptsz, CUstream hStream, const CUdeviceptr *addresses,
                      const size_t *sizes, size_t count, unsigned long long flags)
{
    struct sim_stream *stream;
    CUresult result;

    if (addresses == NULL || sizes == NULL || count == 0 || flags != 0 ||
        (hStream == NULL && !ptsz) || hStream == CU_STREAM_LEGACY) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    result = sim_stream_resolve(hStream, ptsz, &stream);
    for (size_t i = 0; i < count && result == CUDA_SUCCESS; i++) {
        result = hint(stream, addresses[i], sizes[i]);
    }
    return result;
}

/* The destinations of a batch: `indices` has the index of the first range for each destination. */
struct destinations {
    const CUmemLocation *locations;
    const size_t *indices;
    size_t count;
};

static CUresult batch_to(bool ptsz, CUstream hStream, const CUdeviceptr *addresses,
                         const size_t *sizes, size_t count, struct destinations to,
                         unsigned long long flags)
{
    if (to.locations == NULL || to.indices == NULL || to.count == 0 || to.count > count ||
        to.indices[0] != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    for (size_t i = 0; i < to.count; i++) {
        CUresult result = check_location(&to.locations[i]);

        if (result != CUDA_SUCCESS) {
            return result;
        }
    }
    return batch(ptsz, hStream, addresses, sizes, count, flags);
}

SIM_API_PTSZ(cuMemPrefetchBatchAsync, SIM_CONTEXT,
             (CUdeviceptr * dptrs, size_t *sizes, size_t count, CUmemLocation *prefetchLocs,
              size_t *prefetchLocIdxs, size_t numPrefetchLocs, unsigned long long flags,
              CUstream hStream))
{
    struct destinations to = {prefetchLocs, prefetchLocIdxs, numPrefetchLocs};

    return batch_to(ptsz, hStream, dptrs, sizes, count, to, flags);
}

SIM_API_PTSZ(cuMemDiscardBatchAsync, SIM_CONTEXT,
             (CUdeviceptr * dptrs, size_t *sizes, size_t count, unsigned long long flags,
              CUstream hStream))
{
    return batch(ptsz, hStream, dptrs, sizes, count, flags);
}

SIM_API_PTSZ(cuMemDiscardAndPrefetchBatchAsync, SIM_CONTEXT,
             (CUdeviceptr * dptrs, size_t *sizes, size_t count, CUmemLocation *prefetchLocs,
              size_t *prefetchLocIdxs, size_t numPrefetchLocs, unsigned long long flags,
              CUstream hStream))
{
    struct destinations to = {prefetchLocs, prefetchLocIdxs, numPrefetchLocs};

    return batch_to(ptsz, hStream, dptrs, sizes, count, to, flags);
}

SIM_API_PTSZ(cuStreamAttachMemAsync, SIM_CONTEXT,
             (CUstream hStream, CUdeviceptr dptr, size_t length, unsigned int flags))
{
    struct sim_stream *stream;
    CUresult result = sim_stream_resolve(hStream, ptsz, &stream);

    if (result != CUDA_SUCCESS) {
        return result;
    }
    if (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST &&
        flags != CU_MEM_ATTACH_SINGLE) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (flags == CU_MEM_ATTACH_SINGLE && stream->role == SIM_STREAM_LEGACY) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    return hint(stream, dptr, length == 0 ? 1 : length);
}
