/* The ways by which programs reach the driver, as `spillway doctor` tries them. */
#pragma once

/* Each way once: word for the child's command line, and in words. SPW_DOOR(ID, word, text) */
#define SPW_DOORS                                                                                  \
    SPW_DOOR(EXPORTED, "exported", "cuMemAlloc_v2, linked with -lcuda")                            \
    SPW_DOOR(DLSYM, "dlsym", "cuMemAlloc_v2 by dlsym on libcuda.so.1")                             \
    SPW_DOOR(RESOLVER_V1, "resolver-v1", "cuMemAlloc by cuGetProcAddress, as in CUDA 11.3")        \
    SPW_DOOR(RESOLVER_V2, "resolver-v2", "cuMemAlloc by cuGetProcAddress_v2")                      \
    SPW_DOOR(ORDERED, "ordered", "cuMemAllocAsync by cuGetProcAddress_v2")                         \
    SPW_DOOR(RUNTIME, "runtime", "cudaMalloc of libcudart.so")                                     \
    SPW_DOOR(RUNTIME_ORDERED, "runtime-ordered", "cudaMallocAsync of libcudart.so")

enum spw_door {
#define SPW_DOOR(id, word, text) SPW_DOOR_##id,
    SPW_DOORS
#undef SPW_DOOR
        SPW_DOOR_COUNT
};

/* The word and the text of a door; static storage. */
const char *spw_door_word(enum spw_door door);
const char *spw_door_text(enum spw_door door);
