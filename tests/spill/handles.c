/* A program that launches every kind of kernel handle while memory is short.
 *
 *     handles functions  kernels without parameters, and with parameters that nobody can tell, of
 *                        a module
 *     handles kernels    kernels of a library, passed to the launch as they are
 *
 * Made for a device of 64 MiB. Exit 0 when all content is right. */
#include <stdbool.h>
#include <string.h>

#include "common.h"

enum { BLOCKS = 12, BLOCK_BYTES = 8 * MIB, WORDS = BLOCK_BYTES / 4, ROUNDS = 8 };

static CUfunction add_kernel, empty_kernel, unknown_kernel;

static void find_functions(CUmodule module)
{
    MUST(cuModuleGetFunction(&add_kernel, module, "spw_add"));
    MUST(cuModuleGetFunction(&empty_kernel, module, "_Z4nonev"));
    MUST(cuModuleGetFunction(&unknown_kernel, module, "_Z1fPf6Struct"));
}

static void find_kernels(void)
{
    CUlibrary library;

    MUST(cuLibraryLoadData(&library, "any image will do", NULL, NULL, 0, NULL, NULL, 0));
    MUST(cuLibraryGetKernel((CUkernel *)&add_kernel, library, "spw_add"));
    MUST(cuLibraryGetKernel((CUkernel *)&empty_kernel, library, "_Z4nonev"));
    unknown_kernel = NULL;
}

int main(int argc, char **argv)
{
    CUdeviceptr blocks[BLOCKS];
    uint32_t expected[BLOCKS];
    char argument[64] = "";
    void *params[] = {argument, argument};
    size_t wrong = 0;
    CUmodule module;

    enter_device(0, &module);
    if (argc == 2 && strcmp(argv[1], "kernels") == 0) {
        find_kernels();
    } else {
        find_functions(module);
    }
    for (int i = 0; i < BLOCKS; i++) {
        expected[i] = new_block(&blocks[i], i, WORDS, NULL);
    }
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < BLOCKS; i++) {
            MUST(cuLaunchKernel(empty_kernel, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
            if (unknown_kernel != NULL) {
                MUST(cuLaunchKernel(unknown_kernel, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
            }
            launch_add(add_kernel, &blocks[i], WORDS, NULL);
            expected[i]++;
        }
        MUST(cuCtxSynchronize());
    }
    for (int i = 0; i < BLOCKS; i++) {
        wrong += count_wrong(blocks[i], WORDS, expected[i]);
        MUST(cuMemFreeAsync(blocks[i], NULL));
    }
    trim_pool();
    printf("%zu words wrong\n", wrong);
    return wrong > 0;
}
