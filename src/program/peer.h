/* Copies between devices that must be peer copies.
 *
 * Blocks consist of memory of cuMemCreate. Another device can access such memory only if
 * cuCtxEnablePeerAccess or cuMemPoolSetAccess granted the access. Without the grant the driver
 * refuses a plain copy, but performs a peer copy (llama.cpp#4638, solved by #4620). Both of
 * PyTorch's allocators choose between the two copies in this way. With memory of cuMemAlloc, a
 * program may leave the choice to the driver.
 *
 * Copies between a device's memory and the host are not changed. Locking: takes the locks of the
 * tables of streams and contexts. */
#pragma once

#include <stdbool.h>

#include "driver/cuda_api.h"

/* The contexts of a peer copy. */
struct spw_peer {
    CUcontext to, from;
};

/* Returns true if a copy on `stream` must be a peer copy between the contexts in *ret_peer.
 * `per_thread` as in program/stream.h. The caller holds a lease. */
bool spw_program_peer_find(CUdeviceptr to, CUdeviceptr from, CUstream stream, bool per_thread,
                           struct spw_peer *ret_peer);
