/* A program that needs more than a device of 64 MiB has, and may load a library whose work nobody
 * in front of the driver sees.
 *
 *     unseen              without the library
 *     unseen LIBRARY      with it, which adds to the cold blocks while others are allocated
 *     unseen LIBRARY late the same, but blocks have moved before it is loaded
 *
 * Exit 0 when all content is right. */
#include <dlfcn.h>
#include <string.h>

#include "../common.h"
#include "library.h"

enum { COLD = 14, COLD_BYTES = 3 * MIB + 512, COLD_WORDS = COLD_BYTES / 4 };
enum { HOT_BYTES = 9 * MIB, HOTS = 3, ROUNDS = 12, AGE = 80 };

static CUfunction add_kernel;
static CUdeviceptr cold[COLD];
static uint32_t expected[COLD];

/* Frees, which make the live blocks old. */
static void let_age(void)
{
    CUdeviceptr brief;

    for (int i = 0; i < AGE; i++) {
        MUST(cuMemAllocAsync(&brief, 512, NULL));
        MUST(cuMemFreeAsync(brief, NULL));
    }
}

/* What a step of a program does: it uses all of its memory, in the same order. */
static void work(int rounds)
{
    CUdeviceptr hot[HOTS];

    for (int round = 0; round < rounds; round++) {
        let_age();
        for (int i = 0; i < HOTS; i++) {
            MUST(cuMemAllocAsync(&hot[i], HOT_BYTES, NULL));
            MUST(cuMemsetD8Async(hot[i], 0xaa, HOT_BYTES, NULL));
        }
        for (int i = 0; i < COLD; i++) {
            launch_add(add_kernel, &cold[i], COLD_WORDS, NULL);
            expected[i]++;
        }
        for (int i = 0; i < HOTS; i++) {
            MUST(cuMemFreeAsync(hot[i], NULL));
        }
        MUST(cuCtxSynchronize());
    }
}

int main(int argc, char **argv)
{
    struct unseen_work hidden = {.blocks = cold, .count = COLD, .words = COLD_WORDS};
    void *library = NULL;
    unsigned added = 0;
    size_t wrong = 0;
    CUmodule module;

    hidden.context = enter_device(0, &module);
    MUST(cuModuleGetFunction(&add_kernel, module, "spw_add"));
    hidden.add = add_kernel;
    for (int i = 0; i < COLD; i++) {
        expected[i] = new_block(&cold[i], i, COLD_WORDS, NULL);
    }
    MUST(cuCtxSynchronize());
    if (argc > 2 && strcmp(argv[2], "late") == 0) {
        work(ROUNDS);
    }
    if (argc > 1) {
        library = dlopen(argv[1], RTLD_NOW);
        ((begin_unseen_function *)(uintptr_t)dlsym(library, "begin_unseen"))(&hidden);
    }
    work(ROUNDS);
    if (library != NULL) {
        added = ((end_unseen_function *)(uintptr_t)dlsym(library, "end_unseen"))();
    }
    for (int i = 0; i < COLD; i++) {
        wrong += count_wrong(cold[i], COLD_WORDS, expected[i] + added);
        MUST(cuMemFreeAsync(cold[i], NULL));
    }
    trim_pool();
    printf("%zu words wrong\n", wrong);
    return wrong > 0;
}
