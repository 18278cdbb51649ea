/* Short data between the ranks of a communicator, in the order of their streams.
 *
 * Each exchange is four steps on each rank's stream: wait until all ranks have taken what they want
 * of the exchange before; copy to the own box and say so; wait for the boxes of others, and copy
 * from them; say so. So a rank that is missing stops the streams of the others, as on GPUs.
 *
 * Locking: as a communicator's. */
#pragma once

#include "sim/libs/nccl/comm.h"

/* What a rank puts into its box, and takes from others'. Sizes are in bytes. */
struct sim_nccl_exchange {
    CUstream stream;
    CUdeviceptr outbox;
    size_t outbox_bytes; /* 0: nothing to say */
    CUdeviceptr inbox;
    size_t piece_bytes;
    size_t from;   /* where a piece is in the box of a rank */
    int source;    /* the one rank to take from, or -1: one piece from each, in order */
    bool receives; /* else nothing is taken */
};

/* Whether the communicator's ranks can exchange data on that stream. Not while it captures: a graph
 * would repeat the counts of exchanges. */
bool sim_nccl_exchange_is_possible(ncclComm_t comm, CUstream stream);

/* Queues the four steps; call it only where it is possible, on every rank. Errors are the driver's.
 */
CUresult sim_nccl_exchange_run(ncclComm_t comm, const struct sim_nccl_exchange *exchange);

/* Lets go of the streams that still wait for other ranks: the communicator ends. */
void sim_nccl_exchange_end(ncclComm_t comm);
