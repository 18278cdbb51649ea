/* The rows of versions.def. Constant. */
#pragma once

#include <stddef.h>

/* The functions of CUDAAllocator that are replaced or called, in the order of the columns. */
enum spw_torch_function {
    SPW_TORCH_ALLOCATE,
    SPW_TORCH_RAW_DELETER,
    SPW_TORCH_RAW_ALLOC,
    SPW_TORCH_RAW_ALLOC_WITH_STREAM,
    SPW_TORCH_RAW_DELETE,
    SPW_TORCH_INITIALIZED,
    SPW_TORCH_ENABLE,
    SPW_TORCH_GET_MEMORY_FRACTION,
    SPW_TORCH_SET_MEMORY_FRACTION,
    SPW_TORCH_EMPTY_CACHE,
    SPW_TORCH_GET_BASE_ALLOCATION,
    SPW_TORCH_RECORD_STREAM,
    SPW_TORCH_GET_DEVICE_STATS,
    SPW_TORCH_RESET_ACCUMULATED_STATS,
    SPW_TORCH_RESET_PEAK_STATS,
    SPW_TORCH_SNAPSHOT,
    SPW_TORCH_BEGIN_ALLOCATE_TO_POOL,
    SPW_TORCH_END_ALLOCATE_TO_POOL,
    SPW_TORCH_SHARE_IPC_HANDLE,
    SPW_TORCH_RECORD_HISTORY,
    SPW_TORCH_ATTACH_TRACE_TRACKER,
    SPW_TORCH_SET_CHECKPOINT_POOL_STATE,
    SPW_TORCH_GET_NAME,
    SPW_TORCH_FUNCTIONS
};

struct spw_torch_row {
    int major, minor;
    int slots[SPW_TORCH_FUNCTIONS]; /* index in the table; -1: the version does not have this
                                       function */
    int functions;                  /* number of functions in the table */
    int by_pool;                    /* the function snapshot takes the id of a pool */
    /* Offsets in DeviceStats. */
    size_t active_bytes, requested_bytes, device_allocs, device_frees;
    size_t private_pools; /* 0: the version has no such table */
};

/* Returns the row of a version; NULL if there is none. */
const struct spw_torch_row *spw_torch_row_of(int major, int minor);
