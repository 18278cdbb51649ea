/* Uses one device on several threads while another thread creates and destroys contexts. Needs two
 * devices. Arguments: the kind of context ("own", "owns", "primary", "counted", "shared" or "peer")
 * and the time in milliseconds.
 *
 * own: creates and destroys a context of device 1.
 * owns: two threads do that.
 * primary: retains the primary context of device 1, and releases or resets it.
 * counted: two threads retain and release it.
 * shared: creates and destroys a context of device 0.
 * peer: as "own", with access to the memory of device 0. */
#include <cuda.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

#include "check.h"

enum { WORKERS = 2, ROUND = 8, BYTES = 3 << 20, SMALL_BYTES = 2048 };

static struct {
    const char *kind;
    CUdevice devices[2];
    CUcontext first; /* the workers' context, of device 0 */
    _Atomic bool over;
} test;

/* Fills a block on a stream and reads it back: no other thread may use it. */
static void use(CUdeviceptr block, CUstream stream, unsigned int value)
{
    unsigned int found[2] = {0};

    MUST(cuMemsetD32Async(block, value, SMALL_BYTES / sizeof(value), stream));
    MUST(cuMemcpyDtoHAsync(found, block + SMALL_BYTES - sizeof(found), sizeof(found), stream));
    MUST(cuStreamSynchronize(stream));
    HOLD(found[0] == value && found[1] == value);
}

/* Allocates and frees in the current context, with and without a stream. */
static void allocate_and_free(CUstream stream, unsigned int value)
{
    CUdeviceptr blocks[ROUND];

    for (int i = 0; i < ROUND; i++) {
        size_t bytes = i % 2 == 0 ? BYTES : SMALL_BYTES;

        if (i < ROUND / 2) {
            MUST(cuMemAlloc(&blocks[i], bytes));
        } else {
            MUST(cuMemAllocAsync(&blocks[i], bytes, stream));
        }
    }
    for (int i = 0; i < ROUND; i++) {
        use(blocks[i], stream, value + (unsigned int)i);
    }
    for (int i = 0; i < ROUND; i++) {
        if (i < ROUND / 2) {
            MUST(cuMemFree(blocks[i]));
        } else {
            MUST(cuMemFreeAsync(blocks[i], stream));
        }
    }
}

/* A round with a stream of its own. */
static void work_once(unsigned int value)
{
    CUstream stream;

    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    allocate_and_free(stream, value);
    MUST(cuStreamDestroy(stream));
}

static void *work(void *number)
{
    unsigned int value = (unsigned int)(size_t)number << 24;

    MUST(cuCtxSetCurrent(test.first));
    while (!atomic_load(&test.over)) {
        work_once(value);
        MUST(cuCtxSynchronize());
        value += ROUND;
    }
    return NULL;
}

static void own_context(CUdevice device)
{
    CUcontext context;
    CUstream stream;

    MUST(cuCtxCreate(&context, NULL, 0, device));
    if (strcmp(test.kind, "peer") == 0) {
        MUST(cuCtxEnablePeerAccess(test.first, 0));
    }
    MUST(cuStreamCreate(&stream, CU_STREAM_DEFAULT));
    allocate_and_free(stream, 7);
    MUST(cuCtxDestroy(context));
}

static void primary_context(bool reset)
{
    CUcontext context;

    MUST(cuDevicePrimaryCtxRetain(&context, test.devices[1]));
    MUST(cuCtxSetCurrent(context));
    work_once(7);
    MUST(cuCtxSetCurrent(NULL));
    if (reset) {
        MUST(cuDevicePrimaryCtxReset(test.devices[1]));
    }
    MUST(cuDevicePrimaryCtxRelease(test.devices[1]));
}

static void *come_and_go(void *unused)
{
    for (unsigned int i = 0; !atomic_load(&test.over); i++) {
        if (strcmp(test.kind, "primary") == 0 || strcmp(test.kind, "counted") == 0) {
            primary_context(strcmp(test.kind, "primary") == 0 && i % 2 == 0);
        } else {
            own_context(test.devices[strcmp(test.kind, "shared") == 0 ? 0 : 1]);
        }
    }
    return unused;
}

int main(int argc, char **argv)
{
    pthread_t workers[WORKERS], others[2];
    int other_count;
    struct timespec length;
    long milliseconds;

    HOLD(argc == 3);
    test.kind = argv[1];
    milliseconds = strtol(argv[2], NULL, 10);
    length = (struct timespec){milliseconds / 1000, milliseconds % 1000 * 1000000};
    MUST(cuInit(0));
    MUST(cuDeviceGet(&test.devices[0], 0));
    MUST(cuDeviceGet(&test.devices[1], 1));
    MUST(cuDevicePrimaryCtxRetain(&test.first, test.devices[0]));
    other_count = strcmp(test.kind, "counted") == 0 || strcmp(test.kind, "owns") == 0 ? 2 : 1;
    for (int i = 0; i < other_count; i++) {
        MUST(pthread_create(&others[i], NULL, come_and_go, NULL));
    }
    for (size_t i = 0; i < WORKERS; i++) {
        MUST(pthread_create(&workers[i], NULL, work, (void *)(i + 1)));
    }
    nanosleep(&length, NULL);
    atomic_store(&test.over, true);
    for (int i = 0; i < other_count; i++) {
        MUST(pthread_join(others[i], NULL));
    }
    for (size_t i = 0; i < WORKERS; i++) {
        MUST(pthread_join(workers[i], NULL));
    }
    puts("done");
    return 0;
}
