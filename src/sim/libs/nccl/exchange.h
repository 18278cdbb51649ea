/* Exchange of short data between the ranks of a communicator, in the order of their streams.
 *
 * Each exchange queues four steps on each rank's stream: wait until all ranks have read the boxes
 * of the previous exchange; fill and publish this rank's box; wait for the other boxes and copy
 * from them; mark the other boxes as read. A missing rank therefore blocks the streams of the other
 * ranks, as on GPUs.
 *
 * Locking: a communicator is used by one thread at a time. */
#pragma once

#include "sim/libs/nccl/comm.h"

/* One rank's part in an exchange. Sizes are in bytes. */
struct sim_nccl_exchange {
    CUstream stream;
    CUdeviceptr outbox;
    size_t outbox_bytes; /* 0: this rank sends nothing */
    CUdeviceptr inbox;
    size_t piece_bytes;
    size_t from;   /* offset of this rank's piece in a box */
    int source;    /* the rank to read from, or -1: one piece from each rank, in order */
    bool receives; /* false: this rank reads nothing */
};

/* Returns true if the communicator's ranks can exchange data on that stream. A capturing stream
 * cannot be used, because each launch of the graph would use the same exchange numbers. */
bool sim_nccl_exchange_is_possible(ncclComm_t comm, CUstream stream);

/* Queues the four steps. Every rank must call this function, and only if
 * sim_nccl_exchange_is_possible() is true. Errors are the driver's. */
CUresult sim_nccl_exchange_run(ncclComm_t comm, const struct sim_nccl_exchange *exchange);

/* Releases the streams that still wait for this rank; called when the communicator is destroyed. */
void sim_nccl_exchange_end(ncclComm_t comm);
