/* Fills a block while the driver, inside that call, fills another by a function that it exports. */
#include <cuda.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#include "check.h"

enum { BYTES = 4096 };

static CUdeviceptr inner;
static bool nests;
static int nested;

/* The simulated driver does not call itself. It calls the C library, and this function stands in
 * for that: it may make a call of its own before the driver takes its first lock. */
__attribute__((visibility("default"))) int pthread_mutex_trylock(pthread_mutex_t *mutex)
{
    static int (*real)(pthread_mutex_t *);
    Dl_info caller;

    if (real == NULL) {
        *(void **)&real = dlsym(RTLD_NEXT, "pthread_mutex_trylock");
    }
    if (nests && dladdr(__builtin_return_address(0), &caller) != 0 &&
        strstr(caller.dli_fname, "libcuda.so") != NULL) {
        nests = false;
        nested++;
        MUST(cuMemsetD32(inner, 2, BYTES / sizeof(unsigned int)));
    }
    return real(mutex);
}

int main(void)
{
    unsigned int found[2];
    CUdeviceptr outer;
    CUcontext context;
    CUdevice device;

    MUST(cuInit(0));
    MUST(cuDeviceGet(&device, 0));
    MUST(cuDevicePrimaryCtxRetain(&context, device));
    MUST(cuCtxSetCurrent(context));
    MUST(cuMemAlloc(&inner, BYTES));
    MUST(cuMemAlloc(&outer, BYTES));
    nests = true;
    MUST(cuMemsetD32(outer, 1, BYTES / sizeof(unsigned int)));
    HOLD(nested == 1);
    MUST(cuMemcpyDtoH(&found[0], outer, sizeof(found[0])));
    MUST(cuMemcpyDtoH(&found[1], inner, sizeof(found[1])));
    HOLD(found[0] == 1 && found[1] == 2);
    return 0;
}
