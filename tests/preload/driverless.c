/* Linked against libspillway.so itself, on a machine without NVIDIA's driver: prints the result of
 * each call. */
#include <cuda.h>
#include <stdio.h>

int main(void)
{
    CUdeviceptr address = 0;

    printf("alloc: %d\n", cuMemAlloc(&address, 1 << 20));
    printf("free: %d\n", cuMemFree(1 << 20));
    printf("init: %d\n", cuInit(0));
    printf("wait: %d\n", cuCtxSynchronize());
    return 0;
}
