/* Plain copies between two devices: each function that can do one, with the context of either
 * device current, and between two blocks of the device that is not current. Prints what each
 * returned and whether the content is right.
 *
 *     peer_copies           without access
 *     peer_copies WORD...   device 0 asks for access to the memory of device 1, once for each word,
 *                           and prints the word with the answer */
#include <cuda.h>
#include <string.h>

#include "check.h"

enum { BYTES = 6 << 20, PITCH = 1 << 12 };

static CUcontext contexts[2];
static CUstream streams[2];
static CUdeviceptr blocks[2][2]; /* of each device */
static unsigned char want;

static CUresult plain(CUdeviceptr to, CUdeviceptr from, CUstream stream)
{
    return cuMemcpy(to, from, BYTES);
}

static CUresult plain_async(CUdeviceptr to, CUdeviceptr from, CUstream stream)
{
    return cuMemcpyAsync(to, from, BYTES, stream);
}

static CUresult device(CUdeviceptr to, CUdeviceptr from, CUstream stream)
{
    return cuMemcpyDtoD(to, from, BYTES);
}

static CUresult device_async(CUdeviceptr to, CUdeviceptr from, CUstream stream)
{
    return cuMemcpyDtoDAsync(to, from, BYTES, stream);
}

static CUDA_MEMCPY2D rows_of(CUdeviceptr to, CUdeviceptr from)
{
    return (CUDA_MEMCPY2D){.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                           .srcDevice = from,
                           .srcPitch = PITCH,
                           .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                           .dstDevice = to,
                           .dstPitch = PITCH,
                           .WidthInBytes = PITCH,
                           .Height = BYTES / PITCH};
}

static CUresult rows(CUdeviceptr to, CUdeviceptr from, CUstream stream)
{
    const CUDA_MEMCPY2D copy = rows_of(to, from);

    return cuMemcpy2D(&copy);
}

static CUresult rows_async(CUdeviceptr to, CUdeviceptr from, CUstream stream)
{
    const CUDA_MEMCPY2D copy = rows_of(to, from);

    return cuMemcpy2DAsync(&copy, stream);
}

static CUDA_MEMCPY3D volume_of(CUdeviceptr to, CUdeviceptr from)
{
    return (CUDA_MEMCPY3D){.srcMemoryType = CU_MEMORYTYPE_UNIFIED,
                           .srcDevice = from,
                           .srcPitch = PITCH,
                           .srcHeight = BYTES / PITCH / 4,
                           .dstMemoryType = CU_MEMORYTYPE_UNIFIED,
                           .dstDevice = to,
                           .dstPitch = PITCH,
                           .dstHeight = BYTES / PITCH / 4,
                           .WidthInBytes = PITCH,
                           .Height = BYTES / PITCH / 4,
                           .Depth = 4};
}

static CUresult volume(CUdeviceptr to, CUdeviceptr from, CUstream stream)
{
    const CUDA_MEMCPY3D copy = volume_of(to, from);

    return cuMemcpy3D(&copy);
}

static CUresult volume_async(CUdeviceptr to, CUdeviceptr from, CUstream stream)
{
    const CUDA_MEMCPY3D copy = volume_of(to, from);

    return cuMemcpy3DAsync(&copy, stream);
}

static const struct {
    const char *name;
    CUresult (*copy)(CUdeviceptr to, CUdeviceptr from, CUstream stream);
} ways[] = {
    {"cuMemcpy", plain},      {"cuMemcpyAsync", plain_async},
    {"cuMemcpyDtoD", device}, {"cuMemcpyDtoDAsync", device_async},
    {"cuMemcpy2D", rows},     {"cuMemcpy2DAsync", rows_async},
    {"cuMemcpy3D", volume},   {"cuMemcpy3DAsync", volume_async},
};

/* Fills a block with a new value, each from its own device. */
static void put(int ordinal, CUdeviceptr block)
{
    MUST(cuCtxSetCurrent(contexts[ordinal]));
    MUST(cuMemsetD8(block, ++want, BYTES));
    MUST(cuCtxSynchronize());
}

static int holds_all(int ordinal, CUdeviceptr block)
{
    static unsigned char got[BYTES];
    int right = 1;

    MUST(cuCtxSetCurrent(contexts[ordinal]));
    MUST(cuMemcpyDtoH(got, block, BYTES));
    for (size_t i = 0; i < BYTES; i++) {
        right &= got[i] == want;
    }
    return right;
}

static void copy(size_t way, int current, int to, int from)
{
    CUresult result;

    put(from, blocks[from][1]);
    MUST(cuCtxSetCurrent(contexts[current]));
    result = ways[way].copy(blocks[to][0], blocks[from][1], streams[current]);
    MUST(cuCtxSynchronize());
    MUST(cuStreamSynchronize(streams[current]));
    printf("%s from %d to %d by %d: %d, %s\n", ways[way].name, from, to, current, (int)result,
           holds_all(to, blocks[to][0]) ? "right" : "wrong");
}

int main(int argc, char **argv)
{
    MUST(cuInit(0));
    for (int i = 0; i < 2; i++) {
        MUST(cuDevicePrimaryCtxRetain(&contexts[i], i));
        MUST(cuCtxSetCurrent(contexts[i]));
        MUST(cuStreamCreate(&streams[i], CU_STREAM_NON_BLOCKING));
        MUST(cuMemAlloc(&blocks[i][0], BYTES));
        MUST(cuMemAlloc(&blocks[i][1], BYTES));
    }
    for (int i = 1; i < argc; i++) {
        MUST(cuCtxSetCurrent(contexts[0]));
        printf("%s: %d\n", argv[i], (int)cuCtxEnablePeerAccess(contexts[1], 0));
    }
    for (size_t way = 0; way < sizeof(ways) / sizeof(ways[0]); way++) {
        for (int current = 0; current < 2; current++) {
            copy(way, current, 0, 1);
            copy(way, current, 1, 0);
            copy(way, current, !current, !current);
        }
    }
    for (int i = 0; i < 2; i++) {
        MUST(cuMemFree(blocks[i][0]));
        MUST(cuMemFree(blocks[i][1]));
    }
    return 0;
}
