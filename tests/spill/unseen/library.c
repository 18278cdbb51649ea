/* A library that submits work in a way that nothing in front of the driver sees. Built under the
 * name of OptiX. */
#include "library.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define VISIBLE __attribute__((visibility("default")))

/* The driver's own function. */
#define HIDDEN(name) ((__typeof__(name) *)(uintptr_t)hidden(#name))

static struct unseen_work work;
static pthread_t thread;
static atomic_bool ending;
static unsigned rounds;

static void *hidden(const char *name)
{
    static void *(*find)(const char *);
    void *driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);

    if (find == NULL) {
        find = (void *(*)(const char *))(uintptr_t)dlsym(driver, "spillway_sim_hidden");
    }
    return find(name);
}

static void must(CUresult result)
{
    if (result != CUDA_SUCCESS) {
        printf("the library's work fails: %d\n", (int)result);
        exit(1);
    }
}

static void *add(void *unused)
{
    __typeof__(cuLaunchKernel) *launch = HIDDEN(cuLaunchKernel);
    uint32_t one = 1;
    CUstream stream;

    must(HIDDEN(cuCtxSetCurrent)(work.context));
    must(HIDDEN(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
    while (!atomic_load(&ending)) {
        for (int i = 0; i < work.count; i++) {
            CUdeviceptr block = work.blocks[i];
            void *params[] = {&block, &work.words, &one};

            must(launch(work.add, 1, 1, 1, 32, 1, 1, 0, stream, params, NULL));
        }
        must(HIDDEN(cuStreamSynchronize)(stream));
        rounds++;
    }
    must(HIDDEN(cuStreamDestroy)(stream));
    return unused;
}

VISIBLE void begin_unseen(const struct unseen_work *wanted)
{
    work = *wanted;
    if (pthread_create(&thread, NULL, add, NULL) != 0) {
        exit(1);
    }
}

VISIBLE unsigned end_unseen(void)
{
    atomic_store(&ending, true);
    (void)pthread_join(thread, NULL);
    return rounds;
}
