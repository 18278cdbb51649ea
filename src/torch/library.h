/* PyTorch's native allocator in this process: its object, the table of its virtual functions, and
 * the other functions of PyTorch that are needed beside it.
 *
 * Nothing of PyTorch is changed before all of this was found and agreed with the row of the
 * version. Constant from then on. No lock; none may be held, since the search calls the dynamic
 * loader. */
#pragma once

#include "driver/cuda_api.h"
#include "torch/abi.h"
#include "torch/row.h"

enum { SPW_TORCH_VERSION_TEXT = 32, SPW_TORCH_TABLE_MOST = 96 };

/* Any function; to be cast to its type. */
typedef void spw_torch_code(void);

/* The allocator object. Its first word is the address of its table; its other content is not
 * known. */
struct spw_torch_object {
    spw_torch_code *const *table;
};

struct spw_torch_library {
    char version[SPW_TORCH_VERSION_TEXT]; /* "2.11.0", or "" */
    const struct spw_torch_row *row;
    struct spw_torch_object *native;
    spw_torch_code *const *table;          /* the object's own table, as PyTorch made it */
    spw_torch_deleter *deleter;            /* of the memory that it allocates */
    int (*get_device)(int8_t *ret_device); /* 0: done */
    struct spw_torch_stream (*current_stream)(int8_t device);
    CUstream (*stream_handle)(const struct spw_torch_stream *stream);
    /* Reports an allocation to the profiler; negative bytes: a free. The last word has the device's
     * type and number. */
    void (*report)(void *memory, int64_t bytes, size_t allocated, size_t reserved, uint16_t device);
    bool (*is_profiled)(void);         /* true: a profiler wants `report` */
    size_t (*divisions)(size_t bytes); /* the setting roundup_power2_divisions; NULL: not found */
    const void *(*active_pool)(void);  /* the private pool that a snapshot is limited to, or NULL;
                                        * NULL: not found, snapshots take an id or are not limited */
    bool has_older_strings;            /* std::string is the address of a text alone */
    const bool *traced;                /* somebody follows all events: torch.cuda._sanitizer */
    int (*bind)(void *);               /* cudaFree, which with NULL only makes a context current */
    void *(*new_memory)(size_t bytes); /* C++'s operators */
    void (*delete_memory)(void *memory);
};

/* The result of the search. */
enum spw_torch_found {
    SPW_TORCH_ABSENT,        /* PyTorch is not loaded, or not ready */
    SPW_TORCH_FOUND,         /* its native allocator is in force, and agrees with the row */
    SPW_TORCH_ASYNC_BACKEND, /* the backend cudaMallocAsync is in force */
    SPW_TORCH_OTHER,         /* another allocator is in force, such as a pluggable one */
    SPW_TORCH_UNKNOWN,       /* its version has no row */
    SPW_TORCH_DIFFERENT      /* it differs from the row */
};

/* Looks for the library. *ret_library is complete if the result is FOUND; otherwise only its
 * version is valid. */
enum spw_torch_found spw_torch_library_find(struct spw_torch_library *ret_library);
