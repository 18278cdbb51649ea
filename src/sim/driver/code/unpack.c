#include "sim/driver/code/unpack.h"

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

/* The largest cubin that is unpacked. PyTorch's largest takes 39 MiB. */
#define MOST_BYTES ((size_t)1 << 30)

/* As zstd.h and lz4.h declare them. */
typedef size_t zstd_decompress_function(void *dst, size_t dst_bytes, const void *src,
                                        size_t src_bytes);
typedef unsigned int zstd_is_error_function(size_t code);
typedef int lz4_decompress_function(const char *src, char *dst, int src_bytes, int dst_bytes);

/* The libraries' functions; NULL: not found. Set once, before the first cubin is unpacked. */
static struct {
    zstd_decompress_function *zstd;
    zstd_is_error_function *zstd_is_error;
    lz4_decompress_function *lz4;
} libraries;

/* Stores the address of a function in `ret_function`: ISO C cannot cast an object pointer to a
 * function pointer. */
static void find(void *library, const char *name, void *ret_function)
{
    void *found = dlsym(library, name);

    memcpy(ret_function, &found, sizeof(found));
}

static void open_libraries(void)
{
    void *zstd = dlopen("libzstd.so.1", RTLD_NOW | RTLD_LOCAL);
    void *lz4 = dlopen("liblz4.so.1", RTLD_NOW | RTLD_LOCAL);

    if (zstd != NULL) {
        find(zstd, "ZSTD_decompress", &libraries.zstd);
        find(zstd, "ZSTD_isError", &libraries.zstd_is_error);
    }
    if (lz4 != NULL) {
        find(lz4, "LZ4_decompress_safe", &libraries.lz4);
    }
}

void sim_unpack_start(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, open_libraries);
}

/* Unpacks into `cubin`; returns the bytes written, 0 on failure. */
static size_t unpack(const struct sim_packed *packed, unsigned char *cubin)
{
    if (packed->packing == SIM_PACKING_NONE) {
        memcpy(cubin, packed->data, packed->bytes);
        return packed->bytes;
    }
    if (packed->packing == SIM_PACKING_ZSTD && libraries.zstd != NULL &&
        libraries.zstd_is_error != NULL) {
        size_t bytes = libraries.zstd(cubin, packed->cubin_bytes, packed->data, packed->bytes);

        return libraries.zstd_is_error(bytes) ? 0 : bytes;
    }
    if (packed->packing == SIM_PACKING_LZ4 && libraries.lz4 != NULL && packed->bytes <= INT_MAX) {
        int bytes = libraries.lz4((const char *)packed->data, (char *)cubin, (int)packed->bytes,
                                  (int)packed->cubin_bytes);

        return bytes < 0 ? 0 : (size_t)bytes;
    }
    return 0;
}

/* The memory comes from mmap(), because a free() of a block of this size would change how much
 * freed memory the program's malloc() keeps. */
unsigned char *sim_unpack(const struct sim_packed *packed, size_t *ret_size)
{
    void *cubin = MAP_FAILED;

    if (packed->cubin_bytes > 0 && packed->cubin_bytes <= MOST_BYTES) {
        cubin = mmap(NULL, packed->cubin_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                     -1, 0);
    }
    if (cubin == MAP_FAILED) {
        return NULL;
    }
    *ret_size = unpack(packed, cubin);
    if (*ret_size == 0) {
        sim_unpack_free(packed, cubin);
        return NULL;
    }
    return cubin;
}

void sim_unpack_free(const struct sim_packed *packed, unsigned char *cubin)
{
    munmap(cubin, packed->cubin_bytes);
}
