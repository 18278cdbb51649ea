/* Copies between devices that must be peer copies.
 *
 * Blocks are memory of cuMemCreate. Another device reaches such memory only with the access that
 * cuCtxEnablePeerAccess or cuMemPoolSetAccess gave it. Without that access a driver refuses a plain
 * copy (llama.cpp#4638, solved by #4620), but does a peer copy; both of PyTorch's allocators make
 * the same choice. For memory of cuMemAlloc a program may leave the choice to the driver.
 *
 * Copies between a device's memory and the host are left alone. Locking: takes the locks of the
 * tables of streams and contexts. */
#pragma once

#include <stdbool.h>

#include "driver/cuda_api.h"

/* The contexts of a peer copy. */
struct spw_peer {
    CUcontext to, from;
};

/* True when a copy on `stream` must be a peer copy between these contexts. `per_thread` as in
 * program/stream.h. The caller holds a lease. */
bool spw_program_peer_find(CUdeviceptr to, CUdeviceptr from, CUstream stream, bool per_thread,
                           struct spw_peer *ret_peer);
