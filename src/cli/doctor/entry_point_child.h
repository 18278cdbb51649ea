/* The entry points of the driver and the runtime, and the child process of `spillway doctor` that
 * tests one of them. No locking. */
#pragma once

/* The entry points: a word for the child's command line, and a description.
 * SPW_CLI_ENTRY_POINT(ID, word, text) */
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

/* The child prints this for an entry point that this machine does not have. */
#define SPW_CLI_ENTRY_POINT_ABSENT "not there"

/* Without a device the child calls nothing. It prints REACHED if a program would call spillway's
 * function, MISSED if it would call another. */
#define SPW_CLI_ENTRY_POINT_REACHED "reached"
#define SPW_CLI_ENTRY_POINT_MISSED  "missed"

/* The word and the description of an entry point; static storage. */
const char *spw_cli_entry_point_word(enum spw_cli_entry_point entry_point);
const char *spw_cli_entry_point_text(enum spw_cli_entry_point entry_point);

/* The child process: `spillway _entry-point WORD`. Allocates and frees once through that entry
 * point, and prints "done" or one line with the error. Without a device it only looks the function
 * up. The result is the exit code. */
int spw_cli_entry_point_child(int argc, char **argv);
