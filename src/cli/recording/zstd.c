#include "cli/recording/zstd.h"

#include <dlfcn.h>

enum { LEVEL = 3 };

static struct {
    void *library;
    size_t (*compress)(void *to, size_t capacity, const void *from, size_t bytes, int level);
    size_t (*decompress)(void *to, size_t capacity, const void *from, size_t bytes);
    unsigned (*is_error)(size_t result);
} zstd;

bool spw_cli_zstd_open(void)
{
    if (zstd.library == NULL) {
        zstd.library = dlopen("libzstd.so.1", RTLD_NOW | RTLD_LOCAL);
        if (zstd.library != NULL) {
            *(void **)(void *)&zstd.compress = dlsym(zstd.library, "ZSTD_compress");
            *(void **)(void *)&zstd.decompress = dlsym(zstd.library, "ZSTD_decompress");
            *(void **)(void *)&zstd.is_error = dlsym(zstd.library, "ZSTD_isError");
        }
    }
    return zstd.compress != NULL && zstd.decompress != NULL && zstd.is_error != NULL;
}

size_t spw_cli_zstd_compress(void *to, size_t capacity, const void *from, size_t bytes)
{
    size_t result;

    if (!spw_cli_zstd_open()) {
        return 0;
    }
    result = zstd.compress(to, capacity, from, bytes, LEVEL);
    return zstd.is_error(result) == 0 ? result : 0;
}

bool spw_cli_zstd_decompress(void *to, size_t bytes, const void *from, size_t stored)
{
    return spw_cli_zstd_open() && zstd.decompress(to, bytes, from, stored) == bytes;
}
