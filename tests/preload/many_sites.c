/* Allocates a block of 1 MiB at each of 128 call sites, and then one that no device holds. */
#include <cuda.h>

#include "check.h"

enum { MIB = 1 << 20 };

static CUdeviceptr block;

/* So that the compiler does not make one call of several. */
static volatile int number;

#define ONE                                                                                        \
    do {                                                                                           \
        MUST(cuMemAlloc(&block, MIB));                                                             \
        number = __COUNTER__;                                                                      \
    } while (0)
#define FOUR                                                                                       \
    ONE;                                                                                           \
    ONE;                                                                                           \
    ONE;                                                                                           \
    ONE
#define SIXTEEN                                                                                    \
    FOUR;                                                                                          \
    FOUR;                                                                                          \
    FOUR;                                                                                          \
    FOUR

int main(void)
{
    CUcontext context;

    MUST(cuInit(0));
    MUST(cuDevicePrimaryCtxRetain(&context, 0));
    MUST(cuCtxSetCurrent(context));
    SIXTEEN;
    SIXTEEN;
    SIXTEEN;
    SIXTEEN;
    SIXTEEN;
    SIXTEEN;
    SIXTEEN;
    SIXTEEN;
    HOLD(cuMemAlloc(&block, (size_t)1 << 50) == CUDA_ERROR_OUT_OF_MEMORY);
    return 0;
}
