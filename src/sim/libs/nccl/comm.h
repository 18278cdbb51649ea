/* The simulated NCCL. It does not know the other libraries.
 *
 *   absent       a job that runs one rank without the others
 *   board        shared memory of the ranks of a communicator
 *   buffer       a communicator's buffer for other ranks
 *   collective   collectives and messages
 *   comm         communicators, and the memory that they take on a card
 *   exchange     exchanges short data between ranks, in stream order
 *   group        groups of calls, and splits
 *   init         creates, destroys and describes communicators
 *   memory       NCCL's allocator, registered buffers
 *   newer        functions of newer versions that the headers lack
 *
 * Each rank has its own simulated device. The creation of a communicator does not wait for the
 * other ranks, and collectives are launches that compute nothing. Ranks on one machine communicate
 * through a board (board.h): ncclCommSplit waits for the other ranks, and short data that a
 * collective only moves is really exchanged (exchange.h). The values that ranks exchange before
 * training starts are therefore correct. Other collectives do not check that all ranks call them in
 * the same order, so a program that would hang on GPUs may continue here.
 *
 * One small buffer represents NCCL's buffers (buffer.h). The memory that NCCL's buffers take on a
 * real card is reported to the driver for the verdict. With SPILLWAY_SIM_OVERHEAD, this memory is
 * also allocated.
 *
 * Calls between ncclGroupStart and ncclGroupEnd take effect at once, except splits.
 *
 * Locking: a communicator is used by one thread at a time, as the library documents. */
#pragma once

#include <nccl.h>

#include "gpu/communicator.h"
#include "sim/libs/common/shim.h"
#include "sim/libs/nccl/board.h"
#include "sim/libs/nccl/buffer.h"

/* A message that was sent to another rank. */
struct sim_nccl_message {
    unsigned long group; /* `data` is valid in this group (sim_nccl_group); 0: no message */
    int peer;
    CUdeviceptr data;
    size_t bytes;
};

struct ncclComm {
    CUcontext context; /* of the communicator's device */
    int device;
    int rank;
    int ranks;
    struct sim_nccl_board *board;     /* a reference; NULL: other ranks cannot be reached */
    uint64_t number;                  /* identifies the communicator on its board */
    uint32_t splits;                  /* number so far */
    uint32_t exchanges;               /* number so far */
    struct sim_nccl_board_box *boxes; /* NULL: not yet needed, or not available */
    bool is_alone;                    /* no boxes are available */
    struct sim_nccl_message last_message;
    struct sim_nccl_buffer buffer;     /* zeroed if there is only one rank */
    struct sim_nccl_holding *holdings; /* the communicator's memory on a card */
};

/* Also exports a function as pncclX, as NCCL does for profilers that intercept ncclX. */
#define SIM_NCCL_ALIAS(name)                                                                       \
    extern __typeof__(nccl##name) pnccl##name                                                      \
        __attribute__((alias("nccl" #name), visibility("default")));

/* Creates a communicator on the current device, without a board. NULL without host memory, without
 * a device, or if the communicator's buffer cannot be shared. */
struct ncclComm *sim_nccl_comm_create(int ranks, int rank);

/* Frees a communicator, but not its board. */
void sim_nccl_comm_free(struct ncclComm *comm);

/* Takes the memory of a part of the communicator (gpu/communicator.h), unless the communicator
 * already holds this memory. `peer` is the rank that SPW_GPU_PEER connects; a rank of another
 * machine takes no memory. The communicator's device must be current. Errors are the driver's, such
 * as CUDA_ERROR_OUT_OF_MEMORY. If an error is returned, no memory was taken. */
CUresult sim_nccl_hold(struct ncclComm *comm, enum spw_gpu_connection connection, int peer);

/* The number of the calling thread's open group of calls; 0: no group is open. */
unsigned long sim_nccl_group(void);

/* Sets the calling thread's text for ncclGetLastError() (static, not copied); returns `result`. */
ncclResult_t sim_nccl_fail(ncclResult_t result, const char *message);
