/* Uses CUDA on a thread with a small stack, for test_stacks.py.
 *
 *     small_stacks KIB WORK...     KIB: of the stack, behind which a page cannot be touched. WORK:
 *                                  first: the thread makes the program's first call of CUDA; use:
 *                                  every way to allocate, and to use and free a block; many: twelve
 *                                  blocks of 8 MiB at once, which a kernel uses in turn; fill:
 *                                  allocates until none is left; take: allocates a block; deep:
 *                                  the same where little of the stack is left
 *
 * Prints what the calls answer, except how many blocks "fill" got; on stderr how much of the stack
 * was touched. */
#include "check.h"

#include <cuda.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

enum { MIB = 1 << 20, PAGE = 4096, UNTOUCHED = 0xA5, MOST_BLOCKS = 64, LEFT = 8000 };

static struct {
    unsigned char *stack; /* its lowest byte */
    CUcontext context;
    CUfunction add;
    char **work;
} test;

static void prepare(void)
{
    CUmodule module;

    MUST(cuInit(0));
    MUST(cuDevicePrimaryCtxRetain(&test.context, 0));
    MUST(cuCtxSetCurrent(test.context));
    MUST(cuModuleLoadData(&module, "any image will do"));
    MUST(cuModuleGetFunction(&test.add, module, "spw_add"));
}

/* Adds 1 to each word of a block, and looks at the last one. */
static uint32_t add_one(CUdeviceptr block, size_t bytes, CUstream stream)
{
    size_t words = bytes / sizeof(uint32_t);
    uint32_t one = 1, last;
    void *params[] = {&block, &words, &one};

    MUST(cuLaunchKernel(test.add, 1, 1, 1, 32, 1, 1, 0, stream, params, NULL));
    MUST(cuStreamSynchronize(stream));
    MUST(cuMemcpyDtoH(&last, block + bytes - sizeof(last), sizeof(last)));
    return last;
}

static void use(void)
{
    static const size_t sizes[] = {512, 300 << 10, 3 * MIB, 5 * MIB};
    CUstream stream;

    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        CUdeviceptr plain, ordered;
        size_t pitch;

        MUST(cuMemAlloc(&plain, sizes[i]));
        MUST(cuMemAllocAsync(&ordered, sizes[i], stream));
        MUST(cuMemsetD32(plain, 10, sizes[i] / sizeof(uint32_t)));
        MUST(cuMemcpyDtoDAsync(ordered, plain, sizes[i], stream));
        printf("%zu: %u %u\n", sizes[i], add_one(plain, sizes[i], NULL),
               add_one(ordered, sizes[i], stream));
        MUST(cuMemFreeAsync(ordered, stream));
        MUST(cuMemFree(plain));
        MUST(cuMemAllocPitch(&plain, &pitch, sizes[i] / 16, 16, 4));
        MUST(cuMemFree(plain));
    }
    MUST(cuStreamDestroy(stream));
}

static void many(void)
{
    enum { BLOCKS = 12, BYTES = 8 * MIB };
    static CUdeviceptr blocks[BLOCKS];

    for (int i = 0; i < BLOCKS; i++) {
        MUST(cuMemAlloc(&blocks[i], BYTES));
        MUST(cuMemsetD32(blocks[i], (unsigned)i * 100, BYTES / sizeof(uint32_t)));
    }
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < BLOCKS; i++) {
            printf("%u ", add_one(blocks[i], BYTES, NULL));
        }
        printf("\n");
    }
    for (int i = 0; i < BLOCKS; i++) {
        MUST(cuMemFree(blocks[i]));
    }
}

static void fill(void)
{
    static CUdeviceptr blocks[MOST_BLOCKS];
    CUresult result = CUDA_SUCCESS;
    int count = 0;

    while (count < MOST_BLOCKS && (result = cuMemAlloc(&blocks[count], 64 * MIB)) == CUDA_SUCCESS) {
        count++;
    }
    printf("the last one: %d\n", (int)result);
    while (count > 0) {
        MUST(cuMemFree(blocks[--count]));
    }
}

static void take(void)
{
    CUdeviceptr block;

    MUST(cuMemAlloc(&block, 5 * MIB));
    MUST(cuMemFree(block));
}

/* Calls itself until LEFT bytes of the stack are left. */
static __attribute__((noinline)) void go_deep(void)
{
    volatile unsigned char used[256];

    used[0] = 0;
    if (&used[0] - test.stack > LEFT) {
        go_deep();
    } else {
        take();
    }
    used[1] = used[0];
}

static void *work(void *unused)
{
    if (test.context != NULL) {
        MUST(cuCtxSetCurrent(test.context));
    }
    for (char **word = test.work; *word != NULL; word++) {
        if (strcmp(*word, "first") == 0) {
            prepare();
        } else if (strcmp(*word, "use") == 0) {
            use();
        } else if (strcmp(*word, "many") == 0) {
            many();
        } else if (strcmp(*word, "fill") == 0) {
            fill();
        } else if (strcmp(*word, "take") == 0) {
            take();
        } else {
            go_deep();
        }
    }
    return NULL;
}

/* Makes the stack of a thread, with a page below it that cannot be touched. */
static unsigned char *make_stack(size_t bytes)
{
    unsigned char *pages =
        mmap(NULL, PAGE + bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    HOLD(pages != MAP_FAILED);
    MUST(mprotect(pages, PAGE, PROT_NONE));
    return memset(pages + PAGE, UNTOUCHED, bytes);
}

int main(int argc, char **argv)
{
    size_t bytes = argc > 2 ? strtoul(argv[1], NULL, 10) << 10 : 0, left = 0;
    unsigned char *stack = test.stack = make_stack(bytes);
    pthread_attr_t attributes;
    pthread_t thread;

    test.work = argv + 2;
    setvbuf(stdout, NULL, _IOFBF, 1 << 16);
    if (strcmp(argv[2], "first") != 0) {
        prepare();
    }
    MUST(pthread_attr_init(&attributes));
    MUST(pthread_attr_setstack(&attributes, stack, bytes));
    MUST(pthread_create(&thread, &attributes, work, NULL));
    MUST(pthread_join(thread, NULL));
    while (left < bytes && stack[left] == UNTOUCHED) {
        left++;
    }
    fprintf(stderr, "%zu of %zu bytes of the stack touched\n", bytes - left, bytes);
    return 0;
}
