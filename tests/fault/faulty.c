/* A program whose driver fails now and then. Whatever an allocation returns, it continues, and
 * checks the memory that it got. Exit status 0 when that was good, 1 when content or a free was
 * bad.
 *
 * It is made for a small device, so that memory must be reclaimed, and for delayed streams, so that
 * fences matter. It prints every error. */
#include <cuda.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STREAMS = 2, BLOCKS = 12, ROUNDS = 6, MIB = 1 << 20 };

struct block {
    CUdeviceptr address; /* 0: none */
    size_t bytes;
    unsigned char value;
    int stream;
};

static CUstream streams[STREAMS];
static struct block blocks[BLOCKS];
static int status;

static bool failed(CUresult result, const char *call)
{
    const char *name = "?";

    if (result == CUDA_SUCCESS) {
        return false;
    }
    (void)cuGetErrorName(result, &name);
    printf("%s: %s\n", call, name);
    return true;
}

/* For calls that only an injected fault may make fail. */
static void bad(CUresult result, const char *call)
{
    if (failed(result, call)) {
        status = 1;
    }
}

static void allocate(struct block *block, int number, int round)
{
    size_t bytes = (size_t)((number * 7 + round * 5) % 9 + 1) * MIB - (size_t)number * 1000;
    CUresult result;

    block->stream = (number + round) % STREAMS;
    if (number % 4 == 0) {
        result = cuMemAlloc(&block->address, bytes);
    } else {
        result = cuMemAllocAsync(&block->address, bytes, streams[block->stream]);
    }
    if (failed(result, "allocate")) {
        block->address = 0;
        return;
    }
    block->bytes = bytes;
    block->value = (unsigned char)(1 + number * ROUNDS + round);
    bad(cuMemsetD8Async(block->address, block->value, bytes, streams[block->stream]), "memset");
}

static void check(const struct block *block)
{
    unsigned char *bytes = calloc(1, block->bytes);

    if (bytes == NULL) {
        return;
    }
    bad(cuStreamSynchronize(streams[block->stream]), "synchronise");
    bad(cuMemcpyDtoH(bytes, block->address, block->bytes), "copy");
    if (bytes[0] != block->value || memcmp(bytes, bytes + 1, block->bytes - 1) != 0) {
        printf("content of a block of %zu bytes is wrong\n", block->bytes);
        status = 1;
    }
    free(bytes);
}

static void release(struct block *block, int number)
{
    if (number % 3 == 0) {
        bad(cuMemFree(block->address), "cuMemFree");
    } else {
        bad(cuMemFreeAsync(block->address, streams[block->stream]), "cuMemFreeAsync");
    }
    block->address = 0;
}

static void run(int round)
{
    for (int i = 0; i < BLOCKS; i++) {
        if (blocks[i].address == 0) {
            allocate(&blocks[i], i, round);
        }
    }
    for (int i = round % 2; i < BLOCKS; i += 2) {
        if (blocks[i].address != 0) {
            check(&blocks[i]);
            release(&blocks[i], i);
        }
    }
}

static void finish(void)
{
    CUmemoryPool pool = NULL;

    for (int i = 0; i < BLOCKS; i++) {
        if (blocks[i].address != 0) {
            check(&blocks[i]);
            release(&blocks[i], i);
        }
    }
    for (int i = 0; i < STREAMS; i++) {
        bad(cuStreamSynchronize(streams[i]), "synchronise");
        bad(cuStreamDestroy(streams[i]), "destroy");
    }
    /* Runs twice: a failed operation must succeed when it is retried. */
    for (int i = 0; i < 2; i++) {
        if (!failed(cuDeviceGetDefaultMemPool(&pool, 0), "default pool")) {
            (void)failed(cuMemPoolTrimTo(pool, 0), "trim");
        }
    }
}

int main(void)
{
    CUcontext context = NULL;

    if (failed(cuInit(0), "cuInit") ||
        failed(cuDevicePrimaryCtxRetain(&context, 0), "cuDevicePrimaryCtxRetain") ||
        failed(cuCtxSetCurrent(context), "cuCtxSetCurrent")) {
        return 0;
    }
    for (int i = 0; i < STREAMS; i++) {
        if (failed(cuStreamCreate(&streams[i], CU_STREAM_NON_BLOCKING), "cuStreamCreate")) {
            return 0;
        }
    }
    for (int round = 0; round < ROUNDS; round++) {
        run(round);
    }
    finish();
    return status;
}
