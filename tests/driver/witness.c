/* Preloaded before libspillway.so: writes down what the CUDA runtime asks the driver for, and whose
 * function it gets. It stands where the runtime stands: it hands each question on and changes no
 * answer but that of the resolver itself, in whose place the runtime gets ours, which does the
 * same.
 *
 * The file named by WITNESS_LOG gets one line for each question: `dlsym NAME OWNER`, or `v1` or
 * `v2` (of cuGetProcAddress) `NAME VERSION FLAGS OWNER`; an empty name is `-`. OWNER is `none`,
 * `spillway:SYMBOL`, or the name of the library. Programs with one thread only. */
#include <cuda.h>
#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORTED __attribute__((visibility("default")))

typedef void *dlsym_fn(void *library, const char *name);
typedef CUresult resolver_v1(const char *name, void **function, int version, cuuint64_t flags);
typedef CUresult resolver_v2(const char *name, void **function, int version, cuuint64_t flags,
                             CUdriverProcAddressQueryResult *status);

static struct {
    dlsym_fn *dlsym;
    resolver_v1 *v1;
    resolver_v2 *v2;
} next;

__attribute__((format(printf, 2, 3))) static void note(const void *answer, const char *format, ...)
{
    const char *path = getenv("WITNESS_LOG");
    FILE *log = path == NULL ? NULL : fopen(path, "a");
    const char *file;
    va_list arguments;
    Dl_info info;

    if (log == NULL) {
        return;
    }
    va_start(arguments, format);
    vfprintf(log, format, arguments);
    va_end(arguments);
    if (answer == NULL || dladdr(answer, &info) == 0) {
        fputs(" none\n", log);
    } else {
        file = strrchr(info.dli_fname, '/');
        file = file == NULL ? info.dli_fname : file + 1;
        if (strcmp(file, "libspillway.so") == 0) {
            fprintf(log, " spillway:%s\n", info.dli_saddr == answer ? info.dli_sname : "inside");
        } else {
            fprintf(log, " %s\n", file);
        }
    }
    fclose(log);
}

static const char *shown(const char *name)
{
    return *name == '\0' ? "-" : name;
}

static CUresult ask_v1(const char *name, void **function, int version, cuuint64_t flags)
{
    CUresult result = next.v1(name, function, version, flags);

    note(result == CUDA_SUCCESS ? *function : NULL, "v1 %s %d %d", shown(name), version,
         (int)flags);
    return result;
}

static CUresult ask_v2(const char *name, void **function, int version, cuuint64_t flags,
                       CUdriverProcAddressQueryResult *status)
{
    CUresult result = next.v2(name, function, version, flags, status);

    note(result == CUDA_SUCCESS ? *function : NULL, "v2 %s %d %d", shown(name), version,
         (int)flags);
    return result;
}

EXPORTED void *dlsym(void *library, const char *name);

void *dlsym(void *library, const char *name)
{
    void *answer;

    if (next.dlsym == NULL) {
        /* With a version the loader passes by libspillway.so, whose symbols have none. */
        *(void **)&next.dlsym = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
        *(void **)&next.dlsym = next.dlsym(RTLD_NEXT, "dlsym");
    }
    answer = next.dlsym(library, name);
    if (strncmp(name, "cu", 2) != 0 || strncmp(name, "cuda", 4) == 0) {
        return answer;
    }
    note(answer, "dlsym %s", name);
    if (answer != NULL && strcmp(name, "cuGetProcAddress") == 0) {
        *(void **)&next.v1 = answer;
        return (void *)(size_t)ask_v1;
    }
    if (answer != NULL && strcmp(name, "cuGetProcAddress_v2") == 0) {
        *(void **)&next.v2 = answer;
        return (void *)(size_t)ask_v2;
    }
    return answer;
}
