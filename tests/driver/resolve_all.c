/* Asks cuGetProcAddress, both versions, for every name on standard input, at the versions of CUDA
 * that are given as arguments and with each flag for streams, and prints whose function each answer
 * is. No device is needed: cuInit is not called.
 *
 * A line of output: door, flags, name, then for each version the answer: `result/status` if there
 * is no function, `library+offset`, or the symbol if the function is spillway's. */
#include <cuda.h>
#include <dlfcn.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_NAME = 256 };

typedef CUresult resolver_v1(const char *name, void **function, int version, cuuint64_t flags);
typedef CUresult resolver_v2(const char *name, void **function, int version, cuuint64_t flags,
                             CUdriverProcAddressQueryResult *status);

static struct {
    resolver_v1 *v1;
    resolver_v2 *v2;
} doors;

static void print_owner(const void *function)
{
    const char *file = "?";
    Dl_info info;

    if (dladdr(function, &info) == 0) {
        printf(" nobody");
        return;
    }
    file = strrchr(info.dli_fname, '/');
    file = file == NULL ? info.dli_fname : file + 1;
    if (strcmp(file, "libspillway.so") == 0) {
        printf(" %s", info.dli_saddr == function ? info.dli_sname : "inside");
    } else {
        printf(" %.7s+%" PRIxPTR, file, (uintptr_t)function - (uintptr_t)info.dli_fbase);
    }
}

static void ask(int door, const char *name, int version, cuuint64_t flags)
{
    CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SUCCESS;
    void *function = NULL;
    CUresult result = door == 1 ? doors.v1(name, &function, version, flags)
                                : doors.v2(name, &function, version, flags, &status);

    if (result != CUDA_SUCCESS || function == NULL || status != CU_GET_PROC_ADDRESS_SUCCESS) {
        printf(" %d/%d", (int)result, (int)status);
    } else {
        print_owner(function);
    }
}

static void ask_all(const char *name, int count, char **versions)
{
    for (int door = 1; door <= 2; door++) {
        for (cuuint64_t flags = CU_GET_PROC_ADDRESS_DEFAULT;
             flags <= CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM; flags++) {
            printf("%d %d %s", door, (int)flags, name);
            for (int i = 0; i < count; i++) {
                ask(door, name, atoi(versions[i]), flags);
            }
            putchar('\n');
        }
    }
}

int main(int argc, char **argv)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    char name[MAX_NAME];

    if (library == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    *(void **)&doors.v1 = dlsym(library, "cuGetProcAddress");
    *(void **)&doors.v2 = dlsym(library, "cuGetProcAddress_v2");
    if (doors.v1 == NULL || doors.v2 == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    while (fgets(name, sizeof(name), stdin) != NULL) {
        name[strcspn(name, "\n")] = '\0';
        ask_all(name, argc - 1, argv + 1);
    }
    return 0;
}
