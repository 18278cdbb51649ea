/* A program that relies on cuMemFree to wait for the device, as NVIDIA's driver usually does.
 *
 *     free_waits           frees in the context of the memory
 *     free_waits other     frees while the context of another device is current
 *
 * Prints if the bytes were there when cuMemFree returned. */
#include <cuda.h>
#include <stdio.h>
#include <string.h>

#include "check.h"

enum { BYTES = 1 << 20, VALUE = 0x3c, EARLIER = 100 };

int main(int argc, char **argv)
{
    CUcontext context, other = NULL;
    unsigned char *host;
    CUdeviceptr block;
    CUstream stream;

    MUST(cuInit(0));
    if (argc > 1 && strcmp(argv[1], "other") == 0) {
        MUST(cuDevicePrimaryCtxRetain(&other, 1));
    }
    MUST(cuDevicePrimaryCtxRetain(&context, 0));
    MUST(cuCtxSetCurrent(context));
    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    MUST(cuMemHostAlloc((void **)&host, BYTES, 0));
    memset(host, 0, BYTES);
    MUST(cuMemAlloc(&block, BYTES));
    for (int i = 0; i < EARLIER; i++) {
        MUST(cuMemsetD8Async(block, VALUE, BYTES, stream));
    }
    MUST(cuMemcpyDtoHAsync(host, block, BYTES, stream));
    if (other != NULL) {
        MUST(cuCtxSetCurrent(other));
    }
    MUST(cuMemFree(block));
    puts(host[BYTES - 1] == VALUE ? "there" : "stale");
    MUST(cuCtxSetCurrent(context));
    MUST(cuStreamSynchronize(stream));
    puts(host[BYTES - 1] == VALUE ? "there in the end" : "lost");
    MUST(cuMemFreeHost(host));
    return 0;
}
