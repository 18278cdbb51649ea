/* The ways by which programs reach the driver, as `spillway doctor` tries them. */
#pragma once

/* Each way once: word for the child's command line, and in words. SPW_CLI_ENTRY_POINT(ID, word,
 * text) */
#define SPW_CLI_ENTRY_POINTS                                                                       \
    SPW_CLI_ENTRY_POINT(EXPORTED, "exported", "cuMemAlloc_v2, linked with -lcuda")                 \
    SPW_CLI_ENTRY_POINT(DLSYM, "dlsym", "cuMemAlloc_v2 by dlsym on libcuda.so.1")                  \
    SPW_CLI_ENTRY_POINT(RESOLVER_V1, "resolver-v1",                                                \
                        "cuMemAlloc by cuGetProcAddress, as in CUDA 11.3")                         \
    SPW_CLI_ENTRY_POINT(RESOLVER_V2, "resolver-v2", "cuMemAlloc by cuGetProcAddress_v2")           \
    SPW_CLI_ENTRY_POINT(ORDERED, "ordered", "cuMemAllocAsync by cuGetProcAddress_v2")              \
    SPW_CLI_ENTRY_POINT(RUNTIME, "runtime", "cudaMalloc of libcudart.so")                          \
    SPW_CLI_ENTRY_POINT(RUNTIME_ORDERED, "runtime-ordered", "cudaMallocAsync of libcudart.so")

enum spw_cli_entry_point {
#define SPW_CLI_ENTRY_POINT(id, word, text) SPW_CLI_ENTRY_POINT_##id,
    SPW_CLI_ENTRY_POINTS
#undef SPW_CLI_ENTRY_POINT
        SPW_CLI_ENTRY_POINT_COUNT
};

/* The word and the text of a door; static storage. */
const char *spw_cli_entry_point_word(enum spw_cli_entry_point door);
const char *spw_cli_entry_point_text(enum spw_cli_entry_point door);

/* The child process of the doctor: `spillway _entry-point WORD`. Allocates and frees once through
 * that entry point and prints "done", or why it could not. The result is the exit code. */
int spw_cli_entry_point_child(int argc, char **argv);
