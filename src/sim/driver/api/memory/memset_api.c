/* cuMemset*. */
#include "sim/driver/api/entry.h"
#include "sim/driver/exec/memset.h"
#include "sim/driver/graph/stream_capture.h"
#include "sim/driver/graph/submit.h"
#include "sim/driver/memory/content.h"

static CUresult submit(bool ptsz, CUstream hStream, CUDA_MEMSET_NODE_PARAMS params)
{
    struct sim_stream *stream;
    struct sim_op *op;
    CUresult result = sim_stream_resolve(hStream, ptsz, &stream);

    sim_note("dst=%#llx size=%zu", (unsigned long long)params.dst,
             params.width * params.height * params.elementSize);
    if (result != CUDA_SUCCESS || params.width == 0 || params.height == 0) {
        return result;
    }
    result = sim_memset_op_new(&params, sim_stream_device(stream), &op);
    return result == CUDA_SUCCESS ? sim_submit_new(stream, op) : result;
}

/* Even a synchronous memset returns before it is done, except on page-locked host memory. */
static CUresult submit_sync(bool ptds, CUDA_MEMSET_NODE_PARAMS params)
{
    struct sim_stream *stream;
    CUresult result = sim_stream_resolve(NULL, ptds, &stream);

    if (result == CUDA_SUCCESS) {
        result = sim_capture_forbids_sync(stream);
    }
    if (result == CUDA_SUCCESS) {
        result = submit(ptds, NULL, params);
    }
    if (result == CUDA_SUCCESS && sim_mem_kind(params.dst) == SIM_MEM_PINNED) {
        result = sim_submit_wait(stream);
    }
    return result;
}

static CUDA_MEMSET_NODE_PARAMS row(CUdeviceptr dst, unsigned int value, unsigned int size,
                                   size_t count)
{
    return (CUDA_MEMSET_NODE_PARAMS){
        .dst = dst, .value = value, .elementSize = size, .width = count, .height = 1};
}

static CUDA_MEMSET_NODE_PARAMS rows(CUdeviceptr dst, size_t pitch, unsigned int value,
                                    unsigned int size, size_t width, size_t height)
{
    return (CUDA_MEMSET_NODE_PARAMS){.dst = dst,
                                     .pitch = pitch,
                                     .value = value,
                                     .elementSize = size,
                                     .width = width,
                                     .height = height};
}

/* The functions that fill a row or a rectangle with elements of one size, on the default stream or
 * on a given stream. */
#define MEMSET(bits, type)                                                                         \
    SIM_API_PTDS(cuMemsetD##bits##_v2, SIM_CONTEXT, (CUdeviceptr dstDevice, type value, size_t N)) \
    {                                                                                              \
        return submit_sync(ptsz, row(dstDevice, value, bits / 8, N));                              \
    }                                                                                              \
    SIM_API_PTSZ(cuMemsetD##bits##Async, SIM_CONTEXT,                                              \
                 (CUdeviceptr dstDevice, type value, size_t N, CUstream hStream))                  \
    {                                                                                              \
        return submit(ptsz, hStream, row(dstDevice, value, bits / 8, N));                          \
    }                                                                                              \
    SIM_API_PTDS(                                                                                  \
        cuMemsetD2D##bits##_v2, SIM_CONTEXT,                                                       \
        (CUdeviceptr dstDevice, size_t dstPitch, type value, size_t Width, size_t Height))         \
    {                                                                                              \
        return submit_sync(ptsz, rows(dstDevice, dstPitch, value, bits / 8, Width, Height));       \
    }                                                                                              \
    SIM_API_PTSZ(cuMemsetD2D##bits##Async, SIM_CONTEXT,                                            \
                 (CUdeviceptr dstDevice, size_t dstPitch, type value, size_t Width, size_t Height, \
                  CUstream hStream))                                                               \
    {                                                                                              \
        return submit(ptsz, hStream, rows(dstDevice, dstPitch, value, bits / 8, Width, Height));   \
    }

MEMSET(8, unsigned char)
MEMSET(16, unsigned short)
MEMSET(32, unsigned int)
