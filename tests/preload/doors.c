/* One sequence of driver calls, reached in different ways: linked with -lcuda (built with
 * DOOR_LINKED), by dlsym, or by cuGetProcAddress as in CUDA 11.3 or in CUDA 12.
 *
 * Prints every result and no addresses, so the output is the same with and without spillway. */
#include <cuda.h>
#include <dlfcn.h>
#include <string.h>

#include "check.h"

/* Every function used, once. The header's macros choose its version. */
#define FUNCTIONS(X)                                                                               \
    X(cuInit)                                                                                      \
    X(cuGetErrorName)                                                                              \
    X(cuDeviceGet)                                                                                 \
    X(cuDevicePrimaryCtxRetain)                                                                    \
    X(cuDevicePrimaryCtxRelease)                                                                   \
    X(cuCtxSetCurrent)                                                                             \
    X(cuCtxGetCurrent)                                                                             \
    X(cuStreamCreate)                                                                              \
    X(cuStreamSynchronize)                                                                         \
    X(cuStreamDestroy)                                                                             \
    X(cuMemAlloc)                                                                                  \
    X(cuMemFree)                                                                                   \
    X(cuMemAllocAsync)                                                                             \
    X(cuMemFreeAsync)                                                                              \
    X(cuMemsetD8Async)                                                                             \
    X(cuMemcpyDtoH)

struct api {
#define FIELD(name) __typeof__(name) *name##_;
    FUNCTIONS(FIELD)
#undef FIELD
};

static struct api api;

/* CUresult is printed by name. */
static const char *text(CUresult result)
{
    const char *name = "?";

    (void)api.cuGetErrorName_(result, &name);
    return name;
}

#ifdef DOOR_LINKED

static void open_door(const char *door)
{
    (void)door;
#    define TAKE(name) api.name##_ = name;
    FUNCTIONS(TAKE)
#    undef TAKE
}

#else

static void *libcuda(void)
{
    void *handle = dlopen("libcuda.so.1", RTLD_NOW);

    if (handle == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        exit(1);
    }
    return handle;
}

static void *by_dlsym(const char *base, const char *symbol)
{
    (void)base;
    return dlsym(libcuda(), symbol);
}

typedef CUresult get_v1(const char *, void **, int, cuuint64_t);
typedef CUresult get_v2(const char *, void **, int, cuuint64_t, CUdriverProcAddressQueryResult *);

/* Look up the resolver by cuGetProcAddress too, as NVIDIA's runtime does. */
static void *by_proc_v1(const char *base, const char *symbol)
{
    get_v1 *get = NULL;
    void *function = NULL;

    (void)symbol;
    *(void **)&get = dlsym(libcuda(), "cuGetProcAddress");
    MUST(get("cuGetProcAddress", (void **)&get, 11030, CU_GET_PROC_ADDRESS_DEFAULT));
    MUST(get(base, &function, 11030, CU_GET_PROC_ADDRESS_DEFAULT));
    return function;
}

static void *by_proc_v2(const char *base, const char *symbol)
{
    CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    get_v2 *get = NULL;
    void *function = NULL;

    (void)symbol;
    *(void **)&get = dlsym(libcuda(), "cuGetProcAddress_v2");
    MUST(get("cuGetProcAddress", (void **)&get, 12000, CU_GET_PROC_ADDRESS_DEFAULT, NULL));
    MUST(get(base, &function, 12000, CU_GET_PROC_ADDRESS_DEFAULT, &status));
    HOLD(status == CU_GET_PROC_ADDRESS_SUCCESS);
    return function;
}

static void open_door(const char *door)
{
    void *(*find)(const char *, const char *) = strcmp(door, "dlsym") == 0     ? by_dlsym
                                                : strcmp(door, "proc_v1") == 0 ? by_proc_v1
                                                                               : by_proc_v2;

#    define TEXT(name) #    name
#    define TAKE(name)                                                                             \
        *(void **)&api.name##_ = find(#name, TEXT(name));                                          \
        HOLD(api.name##_ != NULL);
    FUNCTIONS(TAKE)
#    undef TAKE
#    undef TEXT
}

#endif

enum { BLOCK_BYTES = (1 << 20) + 100, VALUE = 0x5a };

static void allocate_write_free(int ordered_alloc, int ordered_free, CUstream stream)
{
    static unsigned char bytes[BLOCK_BYTES];
    CUdeviceptr block = 0;

    printf("%s, %s\n", ordered_alloc ? "cuMemAllocAsync" : "cuMemAlloc",
           ordered_free ? "cuMemFreeAsync" : "cuMemFree");
    if (ordered_alloc) {
        SHOW(text, api.cuMemAllocAsync_(&block, BLOCK_BYTES, stream));
    } else {
        SHOW(text, api.cuMemAlloc_(&block, BLOCK_BYTES));
    }
    SHOW(text, api.cuMemsetD8Async_(block, VALUE, BLOCK_BYTES, stream));
    SHOW(text, api.cuStreamSynchronize_(stream));
    memset(bytes, 0, sizeof(bytes));
    SHOW(text, api.cuMemcpyDtoH_(bytes, block, BLOCK_BYTES));
    HOLD(bytes[0] == VALUE && memcmp(bytes, bytes + 1, BLOCK_BYTES - 1) == 0);
    if (ordered_free) {
        SHOW(text, api.cuMemFreeAsync_(block, stream));
        SHOW(text, api.cuStreamSynchronize_(stream));
    } else {
        SHOW(text, api.cuMemFree_(block));
    }
}

static void errors(void)
{
    CUdeviceptr block = 0;

    SHOW(text, api.cuMemAlloc_(&block, (size_t)1 << 50));
    SHOW(text, api.cuMemAlloc_(&block, 0));
    SHOW(text, api.cuMemAlloc_(NULL, 4096));
    SHOW(text, api.cuMemFree_(0));
    SHOW(text, api.cuMemFree_(4096));
}

int main(int argc, char **argv)
{
    CUcontext context = NULL;
    CUcontext current = NULL;
    CUstream stream = NULL;
    CUdevice device = 0;
    CUdeviceptr block = 0;

    open_door(argc > 1 ? argv[1] : "linked");
    SHOW(text, api.cuMemAlloc_(&block, 4096));
    SHOW(text, api.cuInit_(0));
    SHOW(text, api.cuDeviceGet_(&device, 0));
    SHOW(text, api.cuCtxGetCurrent_(&current));
    HOLD(current == NULL);
    SHOW(text, api.cuMemAlloc_(&block, 4096));
    SHOW(text, api.cuDevicePrimaryCtxRetain_(&context, device));
    SHOW(text, api.cuCtxSetCurrent_(context));
    SHOW(text, api.cuStreamCreate_(&stream, CU_STREAM_NON_BLOCKING));

    for (int pairing = 0; pairing < 4; pairing++) {
        allocate_write_free(pairing / 2, pairing % 2, stream);
    }
    errors();

    SHOW(text, api.cuCtxGetCurrent_(&current));
    HOLD(current == context);
    SHOW(text, api.cuStreamDestroy_(stream));
    SHOW(text, api.cuDevicePrimaryCtxRelease_(device));
    return 0;
}
