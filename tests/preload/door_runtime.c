/* The calls of doors.c through the CUDA runtime, and the state that a runtime program can observe:
 * the last error, the current device, and the creation of a context at its first use.
 *
 * Prints no addresses, so the output is the same with and without spillway. */
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <string.h>

#include "check.h"

enum { BLOCK_BYTES = (1 << 20) + 100, VALUE = 0x5a };

static void *driver(const char *symbol)
{
    void *handle = dlopen("libcuda.so.1", RTLD_NOW);

    return handle == NULL ? NULL : dlsym(handle, symbol);
}

static void show_context(void)
{
    CUresult (*get_current)(CUcontext *) = NULL;
    CUcontext context = NULL;

    *(void **)&get_current = driver("cuCtxGetCurrent");
    HOLD(get_current != NULL);
    (void)get_current(&context);
    printf("context: %s\n", context == NULL ? "none" : "current");
}

static void show_state(void)
{
    int device = -1;

    SHOW(cudaGetErrorName, cudaPeekAtLastError());
    SHOW(cudaGetErrorName, cudaGetLastError());
    SHOW(cudaGetErrorName, cudaGetDevice(&device));
    printf("device: %d\n", device);
}

static void allocate_write_free(int ordered_alloc, int ordered_free, cudaStream_t stream)
{
    static unsigned char bytes[BLOCK_BYTES];
    void *block = NULL;

    printf("%s, %s\n", ordered_alloc ? "cudaMallocAsync" : "cudaMalloc",
           ordered_free ? "cudaFreeAsync" : "cudaFree");
    if (ordered_alloc) {
        SHOW(cudaGetErrorName, cudaMallocAsync(&block, BLOCK_BYTES, stream));
    } else {
        SHOW(cudaGetErrorName, cudaMalloc(&block, BLOCK_BYTES));
    }
    SHOW(cudaGetErrorName, cudaMemsetAsync(block, VALUE, BLOCK_BYTES, stream));
    SHOW(cudaGetErrorName, cudaStreamSynchronize(stream));
    memset(bytes, 0, sizeof(bytes));
    SHOW(cudaGetErrorName, cudaMemcpy(bytes, block, BLOCK_BYTES, cudaMemcpyDeviceToHost));
    HOLD(bytes[0] == VALUE && memcmp(bytes, bytes + 1, BLOCK_BYTES - 1) == 0);
    if (ordered_free) {
        SHOW(cudaGetErrorName, cudaFreeAsync(block, stream));
        SHOW(cudaGetErrorName, cudaStreamSynchronize(stream));
    } else {
        SHOW(cudaGetErrorName, cudaFree(block));
    }
}

static void use_device(int device)
{
    struct cudaPointerAttributes attributes;
    cudaStream_t stream = NULL;
    void *block = NULL;

    SHOW(cudaGetErrorName, cudaSetDevice(device));
    SHOW(cudaGetErrorName, cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    for (int pairing = 0; pairing < 4; pairing++) {
        allocate_write_free(pairing / 2, pairing % 2, stream);
    }
    SHOW(cudaGetErrorName, cudaMalloc(&block, 4096));
    SHOW(cudaGetErrorName, cudaPointerGetAttributes(&attributes, block));
    printf("type %d, device %d\n", (int)attributes.type, attributes.device);
    SHOW(cudaGetErrorName, cudaFree(block));
    SHOW(cudaGetErrorName, cudaStreamDestroy(stream));
    show_state();
}

static void errors(void)
{
    void *block = NULL;

    SHOW(cudaGetErrorName, cudaMalloc(&block, (size_t)1 << 50));
    show_state();
    SHOW(cudaGetErrorName, cudaMalloc(NULL, 4096));
    show_state();
    SHOW(cudaGetErrorName, cudaMalloc(&block, 0));
    HOLD(block == NULL);
    SHOW(cudaGetErrorName, cudaFree(NULL));
    SHOW(cudaGetErrorName, cudaFree((void *)4096));
    show_state();
}

int main(void)
{
    size_t free_bytes = 0;
    size_t total_bytes = 0;
    int devices = 0;
    void *block = NULL;

    SHOW(cudaGetErrorName, cudaGetDeviceCount(&devices));
    show_context();
    SHOW(cudaGetErrorName, cudaMalloc(&block, BLOCK_BYTES));
    show_context();
    SHOW(cudaGetErrorName, cudaFree(block));
    for (int device = devices - 1; device >= 0; device--) {
        use_device(device);
    }
    errors();
    SHOW(cudaGetErrorName, cudaMemGetInfo(&free_bytes, &total_bytes));
    HOLD(free_bytes > 0 && free_bytes <= total_bytes);
    SHOW(cudaGetErrorName, cudaDeviceSynchronize());
    return 0;
}
