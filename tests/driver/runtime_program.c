/* A program of the CUDA runtime on a machine that has NVIDIA's driver and no device: calls what any
 * program calls first and prints what each call returns. It is linked with NVIDIA's own runtime,
 * dynamic or static. As C it needs no header of NVIDIA, so that one source fits every version; nvcc
 * compiles it with a kernel. */
#include <stdio.h>

#ifdef __CUDACC__
__global__ void touch(int *word)
{
    *word = 1;
}
#else
typedef void *cudaStream_t;

int cudaGetDeviceCount(int *count);
int cudaDriverGetVersion(int *version);
int cudaRuntimeGetVersion(int *version);
int cudaSetDevice(int device);
int cudaMalloc(void **address, size_t bytes);
int cudaMallocAsync(void **address, size_t bytes, cudaStream_t stream);
int cudaFree(void *address);
int cudaMemGetInfo(size_t *free, size_t *total);
int cudaDeviceSynchronize(void);
int cudaGetLastError(void);
const char *cudaGetErrorName(int error);
#endif

int main(void)
{
    int number = -1;
    void *address = NULL;
    size_t free_bytes = 0;
    size_t total_bytes = 0;

#define SHOW(call) printf("%s: %s\n", #call, cudaGetErrorName(call))
    SHOW(cudaRuntimeGetVersion(&number));
    printf("%d\n", number);
    SHOW(cudaDriverGetVersion(&number));
    printf("%d\n", number);
    SHOW(cudaGetDeviceCount(&number));
    printf("%d\n", number);
    SHOW(cudaSetDevice(0));
    SHOW(cudaMalloc(&address, 1 << 20));
    SHOW(cudaGetLastError());
    SHOW(cudaMallocAsync(&address, 1 << 20, (cudaStream_t)0));
    SHOW(cudaMemGetInfo(&free_bytes, &total_bytes));
    SHOW(cudaFree(NULL));
#ifdef __CUDACC__
    touch<<<1, 1>>>((int *)address);
    SHOW(cudaGetLastError());
#endif
    SHOW(cudaDeviceSynchronize());
    SHOW(cudaGetLastError());
    return 0;
}
