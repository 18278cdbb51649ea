/* A preloaded library that bounds the device memory of a process, as those of containers do: it
 * refuses more than 64 MiB, and tells the program of a device of that size. At the end it writes
 * the most that was used.
 *
 * QUOTA_DLSYM: it replaces dlsym and cuGetProcAddress, and finds the driver's functions past
 * everybody. The others export functions only, which a program reaches that is linked with the
 * driver: QUOTA_EXPORTS finds the next ones, QUOTA_HANDLE those of the driver by a handle. */
#include <cuda.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#if defined(__aarch64__)
#    define OLDEST "GLIBC_2.17"
#else
#    define OLDEST "GLIBC_2.2.5"
#endif
#define EXPORT      __attribute__((visibility("default")))
#define REAL(name)  ((__typeof__(name) *)(uintptr_t)driver(#name))
#define MOST_BLOCKS 4096

enum { QUOTA = 64 << 20 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    uint64_t key;
    size_t bytes;
} known[MOST_BLOCKS];
static size_t used, peak;
static int calls, refused;

#ifdef QUOTA_DLSYM
static void *(*next_dlsym(void))(void *handle, const char *name)
{
    static void *(*next)(void *handle, const char *name);

    if (next == NULL) {
        *(void **)&next = dlvsym(RTLD_NEXT, "dlsym", OLDEST);
    }
    return next;
}
#endif

static void *driver(const char *name)
{
#ifdef QUOTA_EXPORTS
    return dlsym(RTLD_NEXT, name);
#else
    static void *library;

    if (library == NULL) {
        library = dlopen("libcuda.so.1", RTLD_NOW);
    }
#    ifdef QUOTA_DLSYM
    return next_dlsym()(library, name);
#    else
    return dlsym(library, name);
#    endif
#endif
}

/* ---- the account ---- */

static int take(size_t bytes)
{
    int fits;

    pthread_mutex_lock(&lock);
    calls++;
    fits = used + bytes <= QUOTA;
    used += fits ? bytes : 0;
    peak = used > peak ? used : peak;
    refused += !fits;
    pthread_mutex_unlock(&lock);
    return fits;
}

static void note(uint64_t key, size_t bytes)
{
    pthread_mutex_lock(&lock);
    for (int i = 0; i < MOST_BLOCKS; i++) {
        if (known[i].bytes == 0) {
            known[i].key = key;
            known[i].bytes = bytes;
            break;
        }
    }
    pthread_mutex_unlock(&lock);
}

static void give(uint64_t key)
{
    pthread_mutex_lock(&lock);
    for (int i = 0; i < MOST_BLOCKS; i++) {
        if (known[i].bytes != 0 && known[i].key == key) {
            used -= known[i].bytes;
            known[i].bytes = 0;
            break;
        }
    }
    pthread_mutex_unlock(&lock);
}

static CUresult settle(CUresult result, uint64_t key, size_t bytes)
{
    if (result == CUDA_SUCCESS) {
        note(key, bytes);
    } else {
        pthread_mutex_lock(&lock);
        used -= bytes;
        pthread_mutex_unlock(&lock);
    }
    return result;
}

/* ---- what it replaces ---- */

EXPORT CUresult cuMemAlloc_v2(CUdeviceptr *dptr, size_t bytes)
{
    CUresult result;

    if (!take(bytes)) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    result = REAL(cuMemAlloc_v2)(dptr, bytes);
    return settle(result, *dptr, bytes);
}

EXPORT CUresult cuMemFree_v2(CUdeviceptr dptr)
{
    give(dptr);
    return REAL(cuMemFree_v2)(dptr);
}

EXPORT CUresult cuMemAllocAsync(CUdeviceptr *dptr, size_t bytes, CUstream stream)
{
    CUresult result;

    if (!take(bytes)) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    result = REAL(cuMemAllocAsync)(dptr, bytes, stream);
    return settle(result, *dptr, bytes);
}

EXPORT CUresult cuMemFreeAsync(CUdeviceptr dptr, CUstream stream)
{
    give(dptr);
    return REAL(cuMemFreeAsync)(dptr, stream);
}

EXPORT CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t bytes,
                            const CUmemAllocationProp *prop, unsigned long long flags)
{
    CUresult result;

    if (prop->location.type != CU_MEM_LOCATION_TYPE_DEVICE) {
        return REAL(cuMemCreate)(handle, bytes, prop, flags);
    }
    if (!take(bytes)) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    result = REAL(cuMemCreate)(handle, bytes, prop, flags);
    return settle(result, *handle, bytes);
}

EXPORT CUresult cuMemRelease(CUmemGenericAllocationHandle handle)
{
    give(handle);
    return REAL(cuMemRelease)(handle);
}

EXPORT CUresult cuMemGetInfo_v2(size_t *ret_free, size_t *ret_total)
{
    CUresult result = REAL(cuMemGetInfo_v2)(ret_free, ret_total);

    if (result == CUDA_SUCCESS) {
        *ret_free = QUOTA - used;
        *ret_total = QUOTA;
    }
    return result;
}

#ifdef QUOTA_DLSYM
static void *mine(const char *name)
{
    static const struct {
        const char *base, *name;
        void *function;
    } table[] = {
        {"cuMemAlloc", "cuMemAlloc_v2", (void *)cuMemAlloc_v2},
        {"cuMemFree", "cuMemFree_v2", (void *)cuMemFree_v2},
        {"cuMemAllocAsync", "cuMemAllocAsync", (void *)cuMemAllocAsync},
        {"cuMemFreeAsync", "cuMemFreeAsync", (void *)cuMemFreeAsync},
        {"cuMemCreate", "cuMemCreate", (void *)cuMemCreate},
        {"cuMemRelease", "cuMemRelease", (void *)cuMemRelease},
        {"cuMemGetInfo", "cuMemGetInfo_v2", (void *)cuMemGetInfo_v2},
    };

    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        if (strcmp(table[i].name, name) == 0 || strcmp(table[i].base, name) == 0) {
            return table[i].function;
        }
    }
    return NULL;
}

EXPORT CUresult cuGetProcAddress_v2(const char *symbol, void **pfn, int version, cuuint64_t flags,
                                    CUdriverProcAddressQueryResult *status)
{
    CUresult result = REAL(cuGetProcAddress_v2)(symbol, pfn, version, flags, status);
    void *found = result == CUDA_SUCCESS && pfn != NULL && *pfn != NULL ? mine(symbol) : NULL;

    if (found != NULL) {
        *pfn = found;
    }
    return result;
}

EXPORT void *dlsym(void *handle, const char *name)
{
    void *found = NULL;

    if (handle != RTLD_NEXT && strncmp(name, "cu", 2) == 0) {
        found = strcmp(name, "cuGetProcAddress_v2") == 0 ? (void *)cuGetProcAddress_v2 : mine(name);
    }
    return found != NULL ? found : next_dlsym()(handle, name);
}
#endif

__attribute__((destructor)) static void report(void)
{
    fprintf(stderr, "quota: %d calls, peak %zu MiB, %s\n", calls, peak >> 20,
            refused > 0 ? "refused some" : "refused none");
}
