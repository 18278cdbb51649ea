/* The exported functions on memory: allocation, mapping, copies and fills. It does not know the
 * other exported functions.
 *
 *   alloc_api     cuMemAlloc and similar functions
 *   copy2d        two-dimensional copies
 *   copy3d        three-dimensional copies
 *   copy_api      one-dimensional copies
 *   copy_submit   submits copies, and waits as cuda.h requires
 *   ipc           memory shared between processes
 *   mempool_api   memory pools
 *   memset_api    fills
 *   pinned        page-locked host memory
 *   pointer       pointer attributes
 *   prefetch      hints about managed memory
 *   vmm           virtual memory management
 *
 * This header submits copies to streams, with the waits that cuda.h requires for each kind of copy.
 *
 * Locking: the simulator's lock (core/lock.h) is held. */
#pragma once

#include "sim/driver/exec/copy.h"
#include "sim/driver/exec/stream.h"

/* The rule that decides when a copy function returns. */
enum sim_copy_mode {
    SIM_COPY_ASYNC,
    SIM_COPY_SYNC, /* as cuMemcpy: see "API synchronization behavior" in NVIDIA's reference of
                    * cuda.h */
};

/* Submits a copy to the stream. May release the lock if it has to wait. */
CUresult sim_copy_submit(struct sim_stream *stream, const struct sim_copy *copy,
                         enum sim_copy_mode mode);
