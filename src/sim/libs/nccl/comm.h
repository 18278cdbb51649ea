/* Communicators of the simulated NCCL.
 *
 * Each rank has its own simulated device. Creating a communicator does not wait for the other
 * ranks, and collectives are launches that compute nothing. Ranks on one machine do reach each
 * other through a board (board.h): ncclCommSplit waits for the other ranks, and short data that is
 * only moved is really exchanged (exchange.h), so that the values ranks tell each other before they
 * train are right. Other collectives do not check that the peers call them in the same order: a
 * program that would hang on GPUs may run on.
 *
 * The driver is told what NCCL's buffers would take on a card, and with SPILLWAY_SIM_OVERHEAD they
 * take it (holding.h); without it, one small buffer stands for them (buffer.h).
 *
 * Calls between ncclGroupStart and ncclGroupEnd take effect at once, except splits.
 *
 * Locking: a communicator is used by one thread at a time, as the library documents. */
#pragma once

#include <nccl.h>

#include "sim/libs/common/shim.h"
#include "sim/libs/nccl/board.h"
#include "sim/libs/nccl/buffer.h"
#include "sim/libs/nccl/holding.h"

/* A message that was sent to another rank. */
struct sim_nccl_message {
    unsigned long group; /* of calls (sim_nccl_group), in which its memory is valid; 0: none */
    int peer;
    CUdeviceptr data;
    size_t bytes;
};

struct ncclComm {
    CUcontext context; /* of the device it was made on */
    int device;
    int rank;
    int ranks;
    struct sim_nccl_board *board;     /* a reference; NULL: the other ranks cannot be reached */
    uint64_t number;                  /* identifies the communicator on its board */
    uint32_t splits;                  /* so far */
    uint32_t exchanges;               /* so far */
    struct sim_nccl_board_box *boxes; /* NULL: not needed yet, or none available */
    bool is_alone;                    /* no boxes are available */
    struct sim_nccl_message last_message;
    struct sim_nccl_buffer buffer;     /* of several ranks; else zeros */
    struct sim_nccl_holding *holdings; /* the memory that it takes on a card */
};

/* Exports a function a second time as pncclX, as NCCL does for profilers that intercept ncclX. */
#define SIM_NCCL_ALIAS(name)                                                                       \
    extern __typeof__(nccl##name) pnccl##name                                                      \
        __attribute__((alias("nccl" #name), visibility("default")));

/* Creates a communicator on the current device, without a board. NULL without host memory, without
 * a device, and when its buffer cannot be shared. */
struct ncclComm *sim_nccl_comm_create(int ranks, int rank);

/* Frees it, but not its board. */
void sim_nccl_comm_free(struct ncclComm *comm);

/* The number of the group of calls that the calling thread has open; 0: none. */
unsigned long sim_nccl_group(void);

/* Sets the calling thread's text for ncclGetLastError() (static, not copied); returns `result`. */
ncclResult_t sim_nccl_fail(ncclResult_t result, const char *message);
