#include "sim/libs/nccl/exchange.h"

#include "sim/libs/common/driver.h"

/* Stream memory operations compare it as larger than any exchange number. */
#define ENDED INT32_MAX

/* Finds the communicator's boxes and registers them with the driver for use by streams. */
static bool find_boxes(ncclComm_t comm)
{
    struct sim_nccl_board_box *boxes;

    if (comm->boxes == NULL && !comm->is_alone) {
        boxes = comm->board == NULL ? NULL
                                    : sim_nccl_board_boxes(comm->board, comm->number, comm->ranks);
        if (boxes != NULL &&
            sim_shim_driver()->cuMemHostRegister(boxes, (size_t)comm->ranks * sizeof(*boxes),
                                                 CU_MEMHOSTREGISTER_PORTABLE) == CUDA_SUCCESS) {
            comm->boxes = boxes;
        }
        comm->is_alone = comm->boxes == NULL;
    }
    return comm->boxes != NULL;
}

bool sim_nccl_exchange_is_possible(ncclComm_t comm, CUstream stream)
{
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;

    return sim_shim_driver()->cuStreamIsCapturing(stream, &status) == CUDA_SUCCESS &&
           status == CU_STREAM_CAPTURE_STATUS_NONE && find_boxes(comm);
}

static CUresult wait_for(CUstream stream, const uint32_t *counter, uint32_t count)
{
    return sim_shim_driver()->cuStreamWaitValue32(stream, (CUdeviceptr)counter, count,
                                                  CU_STREAM_WAIT_VALUE_GEQ);
}

/* The size may be rounded up to words, because every allocation ends on a word boundary. */
static CUresult put(CUstream stream, char *box, CUdeviceptr from, size_t bytes)
{
    return sim_shim_copy_words((CUdeviceptr)box, from, (bytes + 3) / 4, stream);
}

static CUresult get(CUstream stream, CUdeviceptr to, const char *box, size_t bytes)
{
    return sim_shim_driver()->cuMemcpyDtoDAsync(to, (CUdeviceptr)box, bytes, stream);
}

static CUresult fill(ncclComm_t comm, const struct sim_nccl_exchange *exchange, uint32_t number)
{
    struct sim_nccl_board_box *box = &comm->boxes[comm->rank];
    CUresult result = CUDA_SUCCESS;

    for (int i = 0; i < comm->ranks && result == CUDA_SUCCESS; i++) {
        result = wait_for(exchange->stream, &comm->boxes[i].consumed, number - 1);
    }
    if (result == CUDA_SUCCESS && exchange->outbox_bytes > 0) {
        result = put(exchange->stream, box->data, exchange->outbox, exchange->outbox_bytes);
    }
    return result == CUDA_SUCCESS ? sim_shim_driver()->cuStreamWriteValue32(
                                        exchange->stream, (CUdeviceptr)&box->published, number, 0)
                                  : result;
}

static CUresult take(ncclComm_t comm, const struct sim_nccl_exchange *exchange, uint32_t number)
{
    bool from_all = exchange->source < 0;
    int first = from_all ? 0 : exchange->source;
    int end = from_all ? comm->ranks : first + 1;
    CUdeviceptr to = exchange->inbox;
    CUresult result = CUDA_SUCCESS;

    for (int i = first; i < end && exchange->receives && result == CUDA_SUCCESS; i++) {
        struct sim_nccl_board_box *box = &comm->boxes[i];

        result = wait_for(exchange->stream, &box->published, number);
        if (result == CUDA_SUCCESS) {
            result = get(exchange->stream, to, box->data + exchange->from, exchange->piece_bytes);
        }
        to += exchange->piece_bytes;
    }
    return result == CUDA_SUCCESS
               ? sim_shim_driver()->cuStreamWriteValue32(
                     exchange->stream, (CUdeviceptr)&comm->boxes[comm->rank].consumed, number, 0)
               : result;
}

CUresult sim_nccl_exchange_run(ncclComm_t comm, const struct sim_nccl_exchange *exchange)
{
    uint32_t number = ++comm->exchanges;
    CUresult result = fill(comm, exchange, number);

    return result == CUDA_SUCCESS ? take(comm, exchange, number) : result;
}

/* The boxes stay registered and mapped: a stream may still use them. */
void sim_nccl_exchange_end(ncclComm_t comm)
{
    if (comm->boxes == NULL ||
        __atomic_load_n(&comm->boxes[comm->rank].consumed, __ATOMIC_ACQUIRE) == comm->exchanges) {
        return;
    }
    for (int i = 0; i < comm->ranks; i++) {
        __atomic_store_n(&comm->boxes[i].published, ENDED, __ATOMIC_RELEASE);
        __atomic_store_n(&comm->boxes[i].consumed, ENDED, __ATOMIC_RELEASE);
    }
}
