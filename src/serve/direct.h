/* Allocation and free for the functions that replace those of the program's allocator (torch/). The
 * program makes no call of the driver.
 *
 * To be called without a lock and without a lease. */
#pragma once

#include "device/state.h"

/* A request of the program's allocator. */
struct spw_serve_request {
    int device;
    CUstream stream;    /* the first stream that uses the block; NULL: the legacy default stream */
    uint64_t bytes;     /* more than 0 */
    const char *api;    /* the name for the call site; static storage */
    const void *caller; /* return address in the program */
};

/* The position of a block in the order of work. */
struct spw_serve_order {
    struct spw_stream stream;
    uint64_t generation; /* generation of the known streams when this was filled in */
};

/* Allocates a block of the pool, on the host if necessary. SPW_E_NO_MEMORY: there is no room. This
 * is not counted as out of memory, because the caller then makes another request. SPW_E_AGAIN: the
 * thread has no context of the device yet, or its stream is unknown. Other errors: the pool cannot
 * serve the request. */
enum spw_err spw_serve_direct_alloc(const struct spw_serve_request *request, uint64_t *ret_address,
                                    struct spw_serve_order *ret_order);

/* Frees such a block in the order of its stream. If the stream is NULL, or no longer a stream of
 * the device, frees the block in the order of all work of the device. Does nothing if the pool no
 * longer exists. */
void spw_serve_direct_free(int device, const struct spw_serve_order *order, uint64_t address);

/* Gives the free memory of every pool back to the driver. */
void spw_serve_direct_trim(void);

/* Moves blocks to the host until the device has room for `bytes`, or until no more blocks can
 * move. */
void spw_serve_direct_make_room(int device, uint64_t bytes);

/* Resets the peak of a device pool's reserved bytes. */
void spw_serve_direct_reset_peak(int device);

/* Calls spw_pool_each_free for a device's pool. */
void spw_serve_direct_each_free(int device,
                                void (*visit)(uint64_t address, uint64_t bytes, void *context),
                                void *context);

/* Makes a handle that another process can use to map a block. Returns false if the block cannot be
 * shared. */
bool spw_serve_direct_share(int device, uint64_t address, CUipcMemHandle *ret_handle);
