/* Communicators of the simulated NCCL.
 *
 * A rank is alone with its own simulated device: making a communicator needs no peer and waits for
 * none, and collectives are launches that compute nothing. Ranks on one machine do find each other
 * (board.h): ncclCommSplit waits for the others, for a minute at most, and short data that is only
 * moved, not computed with, travels (exchange.h), so that what ranks tell each other before they
 * train is true. Else what peers do is not looked at: the order of other collectives across ranks
 * is not checked, and a program that would hang on GPUs may run on.
 *
 * NCCL's own buffers take no memory here. Their size depends on the machine (channels, transports,
 * NCCL_BUFFSIZE); a real card has that much less.
 *
 * Calls between ncclGroupStart and ncclGroupEnd take effect at once, but for splits.
 *
 * Locking: as the library documents, a communicator is used by one thread at a time. */
#pragma once

#include <nccl.h>

#include "sim/libs/common/shim.h"
#include "sim/libs/nccl/board.h"

struct ncclComm {
    CUcontext context; /* of the device it was made on */
    int device;
    int rank;
    int ranks;
    struct sim_nccl_board *board;     /* NULL: the other ranks cannot be reached */
    uint64_t number;                  /* the same for all its ranks, on its board */
    uint32_t splits;                  /* so far */
    uint32_t exchanges;               /* so far */
    struct sim_nccl_board_box *boxes; /* once they were needed; NULL: not yet, or there are none */
    bool is_alone;                    /* there are none */
};

/* NCCL exports everything a second time, for profilers that stand in the first. */
#define SIM_NCCL_ALIAS(name)                                                                       \
    extern __typeof__(nccl##name) pnccl##name                                                      \
        __attribute__((alias("nccl" #name), visibility("default")));

/* A new one on the current device. NULL when host memory is out or there is no device. */
struct ncclComm *sim_nccl_comm_create(int ranks, int rank);

/* Remembers what ncclGetLastError says in this thread, and returns the result. */
ncclResult_t sim_nccl_fail(ncclResult_t result, const char *message);
