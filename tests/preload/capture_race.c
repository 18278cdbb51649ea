/* usage: capture_race [free]
 *
 * One thread begins captures in global mode repeatedly, while another allocates memory that the
 * pool must get from a slow driver: a capture may begin between the decision to call the driver and
 * the call. Every capture must be valid.
 *
 * free: the captures are in thread-local mode, and the other thread frees blocks. */
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "check.h"

enum { BLOCKS = 400, BLOCK_BYTES = 2 << 20, PAUSE_US = 20 };

static _Thread_local bool slow;
static cudaStream_t other_stream;
static atomic_bool done;
static bool frees;

static bool is_of_driver(const void *place)
{
    Dl_info info;

    return dladdr(place, &info) != 0 && strstr(info.dli_fname, "libcuda.so") != NULL;
}

/* Replaces the C library's function, which the simulated driver calls at the beginning of each
 * call. Locks of others are taken at once: a thread that is slow to take the pool's lock decides
 * nothing before it has it. */
__attribute__((visibility("default"))) int pthread_mutex_lock(pthread_mutex_t *mutex)
{
    static int (*_Atomic real)(pthread_mutex_t * mutex);

    if (atomic_load(&real) == NULL) {
        int (*found)(pthread_mutex_t * mutex);

        *(void **)&found = dlsym(RTLD_NEXT, "pthread_mutex_lock");
        atomic_store(&real, found);
    }
    if (slow && is_of_driver(__builtin_return_address(0))) {
        (void)usleep(PAUSE_US);
    }
    return atomic_load(&real)(mutex);
}

static void *allocate(void *unused)
{
    void *block;

    slow = true;
    for (int i = 0; i < BLOCKS; i++) {
        if (frees) {
            MUST(cudaMalloc(&block, 4096));
            MUST(cudaFree(block));
        } else {
            MUST(cudaMallocAsync(&block, BLOCK_BYTES, other_stream));
        }
    }
    slow = false;
    atomic_store(&done, true);
    return unused;
}

int main(int argc, char **argv)
{
    cudaStream_t stream = NULL;
    pthread_t thread;
    void *block = NULL;

    frees = argc > 1 && strcmp(argv[1], "free") == 0;
    MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    MUST(cudaStreamCreateWithFlags(&other_stream, cudaStreamNonBlocking));
    MUST(cudaMalloc(&block, 4096));
    MUST(pthread_create(&thread, NULL, allocate, NULL));
    while (!atomic_load(&done)) {
        cudaGraph_t graph = NULL;

        MUST(cudaStreamBeginCapture(stream, frees ? cudaStreamCaptureModeThreadLocal
                                                  : cudaStreamCaptureModeGlobal));
        MUST(cudaMemsetAsync(block, 9, 4096, stream));
        MUST(cudaStreamEndCapture(stream, &graph));
        MUST(cudaGraphDestroy(graph));
    }
    MUST(pthread_join(thread, NULL));
    puts("captures valid");
    return 0;
}
