/* Allocates from functions with known names, as the arguments say, for test_policies.py.
 *
 *     policies WORD...
 *         alpha:MIB, beta:MIB, gamma:KIB    allocates a block in the function of that name
 *         chunk:MIB                         creates physical memory (cuMemCreate), never released
 *         thread:MIB                        allocates a block on a thread called worker
 *         free:N, work:N                    frees block N, or makes the device write to it
 *         ask:N                             asks for what CUDA knows of an address in block N
 *         rest                              waits for the device
 *         step                              marks a step
 *
 * Prints the result of each word and the free memory after it, in MiB. */
#include "check.h"

#include <cuda.h>
#include <dlfcn.h>
#include <pthread.h>
#include <string.h>
#include <sys/prctl.h>

#define EXPORTED __attribute__((visibility("default"), noinline))

enum { MIB = 1 << 20, MOST = 256 };

static CUcontext context;
static CUdeviceptr blocks[MOST];
static size_t sizes[MOST];
static int count;

EXPORTED CUresult alpha(CUdeviceptr *block, size_t bytes);
EXPORTED CUresult beta(CUdeviceptr *block, size_t bytes);
EXPORTED CUresult gamma_of(CUdeviceptr *block, size_t bytes);
EXPORTED CUresult chunk(CUmemGenericAllocationHandle *handle, size_t bytes);

/* The statement after the call prevents a tail call, which would leave no frame. */
static volatile int calls;

CUresult alpha(CUdeviceptr *block, size_t bytes)
{
    CUresult result = cuMemAllocAsync(block, bytes, NULL);

    calls++;
    return result;
}

CUresult beta(CUdeviceptr *block, size_t bytes)
{
    CUresult result = cuMemAlloc(block, bytes);

    calls++;
    return result;
}

CUresult gamma_of(CUdeviceptr *block, size_t bytes)
{
    CUresult result = cuMemAllocAsync(block, bytes, NULL);

    calls++;
    return result;
}

CUresult chunk(CUmemGenericAllocationHandle *handle, size_t bytes)
{
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}};
    CUresult result = cuMemCreate(handle, bytes, &prop, 0);

    calls++;
    return result;
}

static void begin(void)
{
    MUST(cuInit(0));
    MUST(cuDevicePrimaryCtxRetain(&context, 0));
    MUST(cuCtxSetCurrent(context));
}

static void *on_thread(void *bytes)
{
    CUdeviceptr block;

    MUST(prctl(PR_SET_NAME, "worker"));
    MUST(cuCtxSetCurrent(context));
    MUST(alpha(&block, *(size_t *)bytes));
    return NULL;
}

static CUresult run_thread(size_t bytes)
{
    pthread_t thread;

    MUST(pthread_create(&thread, NULL, on_thread, &bytes));
    MUST(pthread_join(thread, NULL));
    return CUDA_SUCCESS;
}

static CUresult take(CUresult (*function)(CUdeviceptr *, size_t), size_t bytes)
{
    sizes[count] = bytes;
    return function(&blocks[count++], bytes);
}

/* Without spillway there is nothing to mark. */
static CUresult step(void)
{
    int (*mark)(void) = (int (*)(void))(uintptr_t)dlsym(RTLD_DEFAULT, "spillway_mark_step");

    return mark != NULL ? (CUresult)mark() : CUDA_SUCCESS;
}

/* The address itself, mapped and not managed, asked one by one and at once. */
static CUresult ask(CUdeviceptr address)
{
    CUdeviceptr pointer = 0, again = 0;
    unsigned managed = 7, mapped = 0;
    CUpointer_attribute names[] = {CU_POINTER_ATTRIBUTE_DEVICE_POINTER, CU_POINTER_ATTRIBUTE_MAPPED,
                                   CU_POINTER_ATTRIBUTE_IS_MANAGED};
    void *values[] = {&again, &mapped, &managed};

    MUST(cuPointerGetAttribute(&pointer, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, address));
    HOLD(pointer == address);
    MUST(cuPointerGetAttribute(&mapped, CU_POINTER_ATTRIBUTE_MAPPED, address));
    HOLD((mapped & 0xff) == 1);
    MUST(cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, address));
    HOLD((managed & 0xff) == 0);
    mapped = 0;
    MUST(cuPointerGetAttributes(3, names, values, address));
    HOLD(again == address && (mapped & 0xff) == 1 && (managed & 0xff) == 0);
    return CUDA_SUCCESS;
}

static CUresult run(const char *word, size_t number)
{
    CUmemGenericAllocationHandle handle;

    if (strcmp(word, "alpha") == 0) {
        return take(alpha, number * MIB);
    }
    if (strcmp(word, "beta") == 0) {
        return take(beta, number * MIB);
    }
    if (strcmp(word, "gamma") == 0) {
        return take(gamma_of, number << 10);
    }
    if (strcmp(word, "chunk") == 0) {
        return chunk(&handle, number * MIB);
    }
    if (strcmp(word, "thread") == 0) {
        return run_thread(number * MIB);
    }
    if (strcmp(word, "free") == 0) {
        return cuMemFreeAsync(blocks[number], NULL);
    }
    if (strcmp(word, "ask") == 0) {
        return ask(blocks[number] + MIB);
    }
    if (strcmp(word, "work") == 0) {
        return cuMemsetD8Async(blocks[number], 1, sizes[number], NULL);
    }
    return strcmp(word, "step") == 0 ? step() : cuCtxSynchronize();
}

int main(int argc, char **argv)
{
    begin();
    for (int i = 1; i < argc; i++) {
        char *word = argv[i];
        char *colon = strchr(word, ':');
        size_t free_bytes, total_bytes;
        CUresult result;

        if (colon != NULL) {
            *colon = '\0';
        }
        result = run(word, colon != NULL ? strtoul(colon + 1, NULL, 10) : 0);
        MUST(cuMemGetInfo(&free_bytes, &total_bytes));
        printf("%s %d %zu\n", word, (int)result, free_bytes / MIB);
    }
    return 0;
}
