/* Allocation and free for the code inside the program's allocator (torch/), without a call of the
 * driver by the program.
 *
 * To be called without a lock and without a lease. */
#pragma once

#include "device/state.h"

/* A request of the program's allocator. */
struct spw_serve_request {
    int device;
    CUstream stream;    /* the first stream to use the block; NULL: the legacy default stream */
    uint64_t bytes;     /* more than 0 */
    const char *api;    /* as a call site names it; static storage */
    const void *caller; /* return address in the program */
};

/* The place of a block in the order of work. */
struct spw_serve_order {
    struct spw_stream stream;
    uint64_t generation; /* generation of the known streams at that time */
};

/* Allocates a block of the pool, on the host if it must be. SPW_E_NO_MEMORY: there is no room; that
 * is not counted as out of memory, since the caller asks in another way. SPW_E_AGAIN: the thread
 * has no context of the device yet, or its stream is unknown. Other errors: the pool cannot serve
 * the request. */
enum spw_err spw_serve_direct_alloc(const struct spw_serve_request *request, uint64_t *ret_address,
                                    struct spw_serve_order *ret_order);

/* Frees such a block in the order of its stream. If the stream is NULL, or no longer one of the
 * device, frees the block after all work of the device. Does nothing if the pool is gone. */
void spw_serve_direct_free(int device, const struct spw_serve_order *order, uint64_t address);

/* Gives the free memory of every pool back to the driver. */
void spw_serve_direct_trim(void);

/* Moves blocks to the host until `bytes` have room on the device, or no more can move. */
void spw_serve_direct_make_room(int device, uint64_t bytes);

/* Resets the peak of the bytes that a device's pool has reserved. */
void spw_serve_direct_reset_peak(int device);

/* spw_pool_each_free of a device's pool. */
void spw_serve_direct_each_free(int device,
                                void (*visit)(uint64_t address, uint64_t bytes, void *context),
                                void *context);

/* Makes a handle that lets another process map a block; false when it cannot be shared. */
bool spw_serve_direct_share(int device, uint64_t address, CUipcMemHandle *ret_handle);
