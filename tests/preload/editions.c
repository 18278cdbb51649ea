/* Calls functions of the driver under the names that cuda.h gives to none of its calls by default:
 * those of older versions of CUDA, and those for per-thread default streams. Prints only what is
 * the same with and without spillway. Needs two devices. */
#include <cuda.h>
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>

#include "check.h"

enum { BYTES = 3 << 20 };

/* The function of exactly this name, of the type of another one. */
#define EDITION(name, like) ((__typeof__(like) *)(uintptr_t)find(name))

static void *find(const char *name)
{
    void *function = dlsym(RTLD_DEFAULT, name);

    HOLD(function != NULL);
    return function;
}

/* Fills a block on a stream; the work is done when this returns. */
static void fill(CUdeviceptr block, unsigned char value, CUstream stream)
{
    unsigned char byte = 0;

    MUST(cuMemsetD8Async(block, value, BYTES, stream));
    MUST(EDITION("cuStreamSynchronize_ptsz", cuStreamSynchronize)(stream));
    MUST(cuMemcpyDtoH(&byte, block + BYTES - 1, 1));
    HOLD(byte == value);
}

static bool is_block(CUdeviceptr address)
{
    CUdeviceptr base = 0;
    size_t bytes = 0;
    CUresult result = cuMemGetAddressRange(&base, &bytes, address);

    HOLD(result != CUDA_SUCCESS || (base == address && bytes == BYTES));
    return result == CUDA_SUCCESS;
}

/* ---- per-thread default streams ---- */

static void use_pool(CUmemoryPool pool, const char *whose)
{
    __typeof__(cuMemAllocFromPoolAsync) *allocate =
        EDITION("cuMemAllocFromPoolAsync_ptsz", cuMemAllocFromPoolAsync);
    CUdeviceptr block = 0;

    MUST(allocate(&block, BYTES, pool, NULL));
    fill(block, 5, NULL);
    printf("%s pool: block %d\n", whose, is_block(block));
    MUST(EDITION("cuMemFreeAsync_ptsz", cuMemFreeAsync)(block, NULL));
    MUST(cuStreamSynchronize(CU_STREAM_PER_THREAD));
    printf("%s pool: block %d\n", whose, is_block(block));
    printf("no bytes: %d\n", allocate(&block, 0, pool, NULL));
    printf("no address: %d\n", allocate(NULL, BYTES, pool, NULL));
    printf("no pool: %d, %d\n", allocate(&block, BYTES, NULL, NULL),
           cuMemAllocFromPoolAsync(&block, BYTES, NULL, NULL));
}

static void use_per_thread_stream(void)
{
    CUmemPoolProps properties = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                 .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}};
    __typeof__(cuMemAllocAsync) *allocate = EDITION("cuMemAllocAsync_ptsz", cuMemAllocAsync);
    CUmemoryPool pool = NULL, own = NULL;
    CUdeviceptr block = 0;

    MUST(allocate(&block, BYTES, NULL));
    fill(block, 7, NULL);
    MUST(EDITION("cuMemFreeAsync_ptsz", cuMemFreeAsync)(block, NULL));
    printf("no bytes: %d\n", allocate(&block, 0, NULL));
    MUST(cuDeviceGetDefaultMemPool(&pool, 0));
    use_pool(pool, "default");
    MUST(cuMemPoolCreate(&own, &properties));
    use_pool(own, "own");
    MUST(cuMemPoolDestroy(own));
}

/* ---- contexts and streams ---- */

/* Allocates in the current context and on a stream of it, and fills both blocks. */
static CUdeviceptr work_in(CUcontext context)
{
    CUdeviceptr block = 0, ordered = 0;
    CUstream stream;

    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    MUST(cuMemAlloc(&block, BYTES));
    MUST(cuMemAllocAsync(&ordered, BYTES, stream));
    fill(block, 1, stream);
    fill(ordered, 2, stream);
    MUST(cuMemFreeAsync(ordered, stream));
    MUST(EDITION("cuCtxSynchronize_v2", cuCtxDestroy)(context));
    MUST(EDITION("cuStreamDestroy", cuStreamDestroy)(stream));
    return block;
}

static void use_contexts(void)
{
    typedef CUresult create_v2(CUcontext *, unsigned int, CUdevice);
    typedef CUresult create_v3(CUcontext *, CUexecAffinityParam *, int, unsigned int, CUdevice);
    create_v2 *v2 = (create_v2 *)(uintptr_t)find("cuCtxCreate_v2");
    create_v3 *v3 = (create_v3 *)(uintptr_t)find("cuCtxCreate_v3");
    __typeof__(cuCtxDestroy) *destroy = EDITION("cuCtxDestroy", cuCtxDestroy);

    for (CUdevice device = 0; device < 2; device++) {
        CUcontext context = NULL;
        CUdeviceptr block;

        MUST(v2(&context, 0, device));
        block = work_in(context);
        printf("before the end of a context: %d\n", is_block(block));
        MUST(destroy(context));
        printf("after it: %d\n", is_block(block));
        MUST(v3(&context, NULL, 0, 0, device));
        block = work_in(context);
        MUST(destroy(context));
        printf("after another: %d\n", is_block(block));
        printf("no such device: %d, %d\n", v2(&context, 0, 7), v3(&context, NULL, 0, 0, 7));
        printf("twice: %d\n", destroy(context));
    }
}

static void use_primary_context(void)
{
    __typeof__(cuDevicePrimaryCtxRelease) *release =
        EDITION("cuDevicePrimaryCtxRelease", cuDevicePrimaryCtxRelease);
    __typeof__(cuDevicePrimaryCtxReset) *reset =
        EDITION("cuDevicePrimaryCtxReset", cuDevicePrimaryCtxReset);
    CUcontext context;
    CUdeviceptr block, brief;
    CUstream left;

    for (int round = 0; round < 2; round++) {
        MUST(cuDevicePrimaryCtxRetain(&context, 1));
        MUST(cuDevicePrimaryCtxRetain(&context, 1));
        MUST(cuCtxPushCurrent(context));
        block = work_in(context);
        MUST(cuStreamCreate(&left, CU_STREAM_NON_BLOCKING));
        fill(block, 8, left);
        MUST(cuMemAllocAsync(&brief, BYTES, left));
        MUST(cuMemFreeAsync(brief, left));
        MUST(cuCtxPopCurrent(&context));
        if (round == 0) {
            MUST(reset(1));
            printf("after a reset: %d\n", is_block(block));
        }
        MUST(release(1));
        printf("after a release: %d\n", is_block(block));
        MUST(release(1));
        printf("after the last one: %d\n", is_block(block));
        printf("one too many: %d\n", release(1));
        printf("no such device: %d, %d\n", release(7), reset(7));
    }
}

/* Its memory is that of the primary context. */
static void use_green_context(void)
{
    CUdevResource resource;
    CUdevResourceDesc description;
    CUcontext primary = NULL, context = NULL;
    CUdeviceptr block = 0;
    CUgreenCtx green;
    CUstream stream;

    MUST(cuCtxGetCurrent(&primary));
    MUST(cuDeviceGetDevResource(0, &resource, CU_DEV_RESOURCE_TYPE_SM));
    MUST(cuDevResourceGenerateDesc(&description, &resource, 1));
    MUST(cuGreenCtxCreate(&green, description, 0, CU_GREEN_CTX_DEFAULT_STREAM));
    MUST(cuCtxFromGreenCtx(&context, green));
    MUST(cuCtxSetCurrent(context));
    MUST(cuGreenCtxStreamCreate(&stream, green, CU_STREAM_NON_BLOCKING, 0));
    MUST(cuMemAllocAsync(&block, BYTES, stream));
    fill(block, 3, stream);
    MUST(cuMemFreeAsync(block, stream));
    MUST(cuMemAlloc(&block, BYTES));
    fill(block, 4, NULL);
    MUST(cuCtxSetCurrent(primary));
    MUST(cuGreenCtxDestroy(green));
    printf("after the end of a green context: %d\n", is_block(block));
    fill(block, 6, NULL);
    MUST(cuMemFree(block));
}

int main(void)
{
    CUcontext context = NULL;

    MUST(cuInit(0));
    MUST(cuDevicePrimaryCtxRetain(&context, 0));
    MUST(cuCtxSetCurrent(context));
    use_per_thread_stream();
    use_contexts();
    use_primary_context();
    use_green_context();
    return 0;
}
