/* PyTorch's native allocator in this process: its object, the table of its virtual functions, and
 * other functions of PyTorch that spillway calls.
 *
 * Nothing of PyTorch is changed until all of this has been found and agrees with the row of the
 * version. It is constant after that. No lock. No lock may be held, because the search calls the
 * dynamic loader. */
#pragma once

#include "driver/cuda_api.h"
#include "torch/abi.h"
#include "torch/returned.h"
#include "torch/row.h"

enum { SPW_TORCH_VERSION_TEXT = 32, SPW_TORCH_TABLE_MOST = 96 };

/* The allocator object. Its first word is the address of its table. The other words are not
 * known. */
struct spw_torch_object {
    spw_torch_code *const *table;
};

struct spw_torch_library {
    char version[SPW_TORCH_VERSION_TEXT]; /* "2.11.0", or "" */
    const struct spw_torch_row *row;
    struct spw_torch_object *native;
    spw_torch_code *const *table;          /* the object's own table, as PyTorch created it */
    spw_torch_deleter *deleter;            /* frees the memory that the allocator allocates */
    int (*get_device)(int8_t *ret_device); /* returns 0 on success */
    struct spw_torch_stream (*current_stream)(int8_t device);
    CUstream (*stream_handle)(const struct spw_torch_stream *stream);
    /* Reports an allocation to the profiler, or a free with negative `bytes`. `device` contains the
     * device's type and number. */
    void (*report)(void *memory, int64_t bytes, size_t allocated, size_t reserved, uint16_t device);
    bool (*is_profiled)(void);         /* returns true if a profiler needs `report` */
    size_t (*divisions)(size_t bytes); /* returns the setting roundup_power2_divisions for this
                                          size. The pointer itself is NULL if the function was not
                                          found */
    const void *(*active_pool)(void);  /* returns the private pool that limits the thread's
                                          snapshots, or NULL. The pointer itself is NULL if
                                          snapshots take an id or are never limited */
    bool has_older_strings;            /* std::string consists only of the address of its text */
    const bool *traced;                /* true while torch.cuda._sanitizer or another observer
                                          follows all events */
    int (*bind)(void *);               /* cudaFree; with NULL it only makes a context current */
    void *(*new_memory)(size_t bytes); /* operator new and operator delete of C++ */
    void (*delete_memory)(void *memory);
};

/* The result of the search. */
enum spw_torch_found {
    SPW_TORCH_ABSENT,        /* PyTorch is not loaded, or not yet initialised */
    SPW_TORCH_FOUND,         /* its native allocator is in use, and agrees with the row */
    SPW_TORCH_ASYNC_BACKEND, /* the backend cudaMallocAsync is in use */
    SPW_TORCH_OTHER,         /* another allocator is in use, such as a pluggable one */
    SPW_TORCH_UNKNOWN,       /* there is no row for its version */
    SPW_TORCH_DIFFERENT      /* the native allocator differs from the row */
};

/* Searches for the library. If the result is FOUND, *ret_library is complete. Otherwise only its
 * version is valid. */
enum spw_torch_found spw_torch_library_find(struct spw_torch_library *ret_library);
