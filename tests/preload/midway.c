/* Calls in the middle of which the driver refuses something, and calls where few programs make
 * them. Prints the result of each, and what became of the memory. Argument: what to do.
 *
 * status: allocates and frees while the driver tells nothing of a stream, and another is captured
 * waits: frees with SPILLWAY_FREE_WAITS, where the device cannot be waited for
 * green: destroys a green context whose context is not told
 * green-unknown: destroys one whose context spillway may not be able to ask for
 * primary: releases and resets a primary context that the driver tells nothing of
 * foreign: allocates from the memory pool of another device. Needs two devices
 * stuck: registers memory of the host, and cannot unregister it
 * registered: the same, and unregisters it the next time
 * lazy: lets hardware reach a block that has no memory yet, as a rule says
 * detached: detaches a context that is not current
 * capable: asks if a block can be shared */
#include <cuda.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

int spillway_sim_fail(const char *list);                   /* of the simulated driver */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations" /* cuCtxAttach and cuCtxDetach */

enum { BYTES = 4 << 20 };

static CUcontext context;
static CUstream stream;

static const char *name_of(CUresult result)
{
    const char *name = "?";

    (void)cuGetErrorName(result, &name);
    return name;
}

/* True for a block of ours, whose content can be written and read. */
static int works(CUdeviceptr block, unsigned char value)
{
    unsigned char byte = 0;

    MUST(cuMemsetD8(block, value, BYTES));
    MUST(cuMemcpyDtoH(&byte, block + BYTES - 1, 1));
    return byte == value;
}

static int is_block(CUdeviceptr address)
{
    CUdeviceptr base;
    size_t bytes;

    return cuMemGetAddressRange(&base, &bytes, address) == CUDA_SUCCESS;
}

static void status(void)
{
    CUdeviceptr block, passed = 0;
    CUgraph graph;
    CUstream other;

    MUST(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
    MUST(cuMemAllocAsync(&block, BYTES, stream));
    MUST(cuStreamBeginCapture(other, CU_STREAM_CAPTURE_MODE_RELAXED));
    MUST(spillway_sim_fail("cuStreamIsCapturing:1+:999"));
    SHOW(name_of, cuMemAllocAsync(&passed, BYTES, stream));
    SHOW(name_of, cuMemFreeAsync(block, stream));
    MUST(spillway_sim_fail(NULL));
    MUST(cuStreamEndCapture(other, &graph));
    printf("kept: %d\n", is_block(block) && works(block, 7) && works(passed, 8));
    SHOW(name_of, cuMemFreeAsync(block, stream));
    SHOW(name_of, cuMemFreeAsync(passed, stream));
}

static void waits(void)
{
    CUdeviceptr block;
    CUgraph graph;

    MUST(cuMemAlloc(&block, BYTES));
    SHOW(name_of, cuMemFree(block + 512));
    MUST(spillway_sim_fail("cuCtxRecordEvent:1:719"));
    SHOW(name_of, cuMemFree(block));
    printf("kept: %d\n", is_block(block) && works(block, 7));
    MUST(spillway_sim_fail("cuCtxRecordEvent:1:900")); /* as if a capture had begun */
    SHOW(name_of, cuMemFree(block));
    MUST(cuMemAlloc(&block, BYTES));
    MUST(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    SHOW(name_of, cuMemFree(block));
    MUST(cuStreamEndCapture(stream, &graph));
    SHOW(name_of, cuMemFree(block));
}

static void destroy_green(const char *refused)
{
    CUdevResource resource;
    CUdevResourceDesc description;
    CUdeviceptr block;
    CUstream own;
    CUgreenCtx made;

    MUST(cuDeviceGetDevResource(0, &resource, CU_DEV_RESOURCE_TYPE_SM));
    MUST(cuDevResourceGenerateDesc(&description, &resource, 1));
    MUST(cuGreenCtxCreate(&made, description, 0, CU_GREEN_CTX_DEFAULT_STREAM));
    MUST(cuGreenCtxStreamCreate(&own, made, CU_STREAM_NON_BLOCKING, 0));
    MUST(cuMemAllocAsync(&block, BYTES, own));
    MUST(cuStreamSynchronize(own));
    MUST(spillway_sim_fail(refused));
    SHOW(name_of, cuGreenCtxDestroy(made));
    MUST(spillway_sim_fail(NULL));
    printf("kept: %d\n", is_block(block) && works(block, 7));
    SHOW(name_of, cuMemFreeAsync(block, stream));
}

static void green(void)
{
    destroy_green("cuCtxFromGreenCtx:1:999");
}

static void green_unknown(void)
{
    destroy_green(NULL);
}

/* The blocks of a context that nobody can ask about are not freed with it: they stay usable in the
 * next one, as mapped memory is. */
static void primary(void)
{
    static const char *const refused[] = {"cuDevicePrimaryCtxGetState:1+:999",
                                          "cuDevicePrimaryCtxRetain:1:999"};

    for (int i = 0; i < 2; i++) {
        CUdeviceptr block, other;

        MUST(cuMemAlloc(&block, BYTES));
        MUST(spillway_sim_fail(refused[i]));
        SHOW(name_of, cuDevicePrimaryCtxRelease(0));
        MUST(spillway_sim_fail(NULL));
        MUST(cuDevicePrimaryCtxRetain(&context, 0));
        MUST(cuCtxSetCurrent(context));
        MUST(cuMemAlloc(&other, BYTES));
        printf("works: %d, a block of its own: %d\n", works(other, 7), other != block);
        SHOW(name_of, cuMemFree(other));
        MUST(spillway_sim_fail(refused[i]));
        SHOW(name_of, cuDevicePrimaryCtxReset(0));
        MUST(spillway_sim_fail(NULL));
        MUST(cuDevicePrimaryCtxRetain(&context, 0));
        MUST(cuCtxSetCurrent(context));
    }
    SHOW(name_of, cuDevicePrimaryCtxRetain(NULL, 0));
}

static void foreign(void)
{
    CUmemAccessDesc access = {.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0},
                              .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUcontext second;
    CUmemoryPool pool;
    CUdeviceptr block;
    int owner = -1;

    MUST(cuDevicePrimaryCtxRetain(&second, 1));
    MUST(cuDeviceGetDefaultMemPool(&pool, 1));
    MUST(cuMemPoolSetAccess(pool, &access, 1));
    SHOW(name_of, cuMemAllocFromPoolAsync(&block, BYTES, pool, stream));
    MUST(cuPointerGetAttribute(&owner, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, block));
    printf("of device %d, works: %d\n", owner, works(block, 7));
    SHOW(name_of, cuMemFreeAsync(block, stream));
}

static void *register_memory(void)
{
    char *memory = aligned_alloc(4096, BYTES);

    HOLD(memory != NULL);
    SHOW(name_of, cuMemHostRegister(memory, BYTES, 0));
    MUST(spillway_sim_fail("cuMemHostUnregister:1:999"));
    SHOW(name_of, cuMemHostUnregister(memory));
    MUST(spillway_sim_fail(NULL));
    return memory;
}

static void stuck(void)
{
    (void)register_memory();
}

static void registered(void)
{
    void *memory = register_memory();

    SHOW(name_of, cuMemHostUnregister(memory));
    SHOW(name_of, cuMemHostUnregister(memory));
}

static void lazy(void)
{
    unsigned int yes = 1, no = 0;
    CUdeviceptr first, second;

    MUST(cuMemAlloc(&first, BYTES));
    (void)cuPointerSetAttribute(&no, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, first);
    MUST(cuMemFree(first));
    MUST(cuMemAlloc(&second, BYTES));
    (void)cuPointerSetAttribute(&yes, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, second);
}

static void detached(void)
{
    CUcontext own, again, popped;
    CUdeviceptr block;

    MUST(cuCtxCreate(&own, NULL, 0, 0));
    MUST(cuMemAlloc(&block, BYTES));
    MUST(cuCtxPopCurrent(&popped));
    SHOW(name_of, cuCtxDetach(own));
    MUST(cuCtxPushCurrent(own));
    printf("kept: %d\n", is_block(block) && works(block, 7));
    MUST(spillway_sim_fail("cuCtxAttach:1:999"));
    again = own;
    SHOW(name_of, cuCtxAttach(&again, 0));
    MUST(spillway_sim_fail(NULL));
    SHOW(name_of, cuCtxDetach(own)); /* the last: the failed call counted none */
    printf("kept: %d\n", is_block(block));
}

static void capable(void)
{
    int answer = 7;
    CUdeviceptr block;

    MUST(cuMemAlloc(&block, BYTES));
    for (int i = 0; i < 2; i++) {
        MUST(spillway_sim_fail(i == 1 ? "cuDeviceGetAttribute:1:999" : NULL));
        MUST(
            cuPointerGetAttribute(&answer, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, block));
        printf("capable: %d\n", answer & 0xff);
    }
    MUST(cuMemFree(block));
}

static const struct {
    const char *name;
    void (*run)(void);
} ways[] = {
    {"status", status},
    {"waits", waits},
    {"green", green},
    {"green-unknown", green_unknown},
    {"primary", primary},
    {"foreign", foreign},
    {"registered", registered},
    {"stuck", stuck},
    {"lazy", lazy},
    {"detached", detached},
    {"capable", capable},
};

int main(int argc, char **argv)
{
    HOLD(argc == 2);
    MUST(cuInit(0));
    MUST(cuDevicePrimaryCtxRetain(&context, 0));
    MUST(cuCtxSetCurrent(context));
    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
        if (strcmp(ways[i].name, argv[1]) == 0) {
            ways[i].run();
            return 0;
        }
    }
    return 2;
}
