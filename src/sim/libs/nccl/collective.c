/* Collectives and messages: launches on the caller's stream that list the memory that they read and
 * write.
 *
 * If a collective only moves data and the data is short, the ranks really exchange the data. A real
 * reduction computes a result from the data of all ranks; here each rank gets its own data instead.
 * A rank also gets its own data if the other ranks cannot be reached or do not run (absent.h). */
#include "sim/libs/common/driver.h"
#include "sim/libs/nccl/absent.h"
#include "sim/libs/nccl/exchange.h"

/* Connections that an operation needs. */
enum kind {
    RING,      /* a collective */
    REDUCTION, /* a reduction with its result on all ranks */
    MESSAGE,   /* from or to one rank, `peer` */
    MESSAGES,  /* from and to all */
};

/* One rank's part in a collective. Counts are in elements. */
struct transfer {
    enum kind kind;
    const char *name;
    ncclComm_t comm;
    ncclDataType_t type;
    cudaStream_t stream;
    int peer; /* the root or the other rank; without either, this rank */
    const void *read;
    size_t read_count;
    void *written;
    size_t written_count;
    /* the data to exchange if it is short: */
    size_t piece;   /* elements of a piece */
    size_t from;    /* element of the sending rank's data at which this rank's piece begins */
    size_t longest; /* maximum number of elements that any rank reads; 0: no exchange */
    int source;     /* the rank that sends all pieces, or ALL: each rank sends one */
    bool receives;
};

#define ALL (-1)

static size_t type_bytes(ncclDataType_t type)
{
    static const unsigned char bytes[] = {
        [ncclInt8] = 1,    [ncclUint8] = 1,    [ncclInt32] = 4,      [ncclUint32] = 4,
        [ncclInt64] = 8,   [ncclUint64] = 8,   [ncclFloat16] = 2,    [ncclFloat32] = 4,
        [ncclFloat64] = 8, [ncclBfloat16] = 2, [ncclFloat8e4m3] = 1, [ncclFloat8e5m2] = 1,
    };

    return (unsigned int)type < sizeof(bytes) ? bytes[type] : 0;
}

/* Copies this rank's own data to the places of the other ranks' data. */
static CUresult copy_own(const struct transfer *t, size_t element_bytes)
{
    size_t bytes = t->piece * element_bytes;
    CUdeviceptr from = (CUdeviceptr)t->read + t->from * element_bytes;
    int pieces = t->source == ALL ? t->comm->ranks : 1;
    CUresult result = CUDA_SUCCESS;

    if (t->read_count == 0) {
        return CUDA_SUCCESS;
    }
    for (int i = 0; i < pieces && result == CUDA_SUCCESS; i++) {
        CUdeviceptr to = (CUdeviceptr)t->written + (size_t)i * bytes;

        if (to != from) {
            result = sim_shim_driver()->cuMemcpyDtoDAsync(to, from, bytes, t->stream);
        }
    }
    return result;
}

/* Replaces a message from an absent rank with the last message that this rank sent, if this rank
 * sent it to the absent rank in the same group. */
static CUresult copy_message(const struct transfer *t, size_t element_bytes)
{
    struct sim_nccl_message *last = &t->comm->last_message;
    struct sim_nccl_message message = {.group = sim_nccl_group(),
                                       .peer = t->peer,
                                       .data = (CUdeviceptr)t->read,
                                       .bytes = (t->read_count + t->written_count) * element_bytes};

    if (message.group == 0 || !sim_nccl_others_are_absent()) {
        return CUDA_SUCCESS;
    }
    if (t->read_count > 0) {
        *last = message;
        return CUDA_SUCCESS;
    }
    if (last->group != message.group || last->peer != message.peer ||
        last->bytes != message.bytes || message.bytes > SIM_NCCL_ABSENT_BYTES) {
        return CUDA_SUCCESS;
    }
    return sim_shim_driver()->cuMemcpyDtoDAsync((CUdeviceptr)t->written, last->data, message.bytes,
                                                t->stream);
}

static bool is_short(const struct transfer *t, size_t element_bytes)
{
    size_t longest = t->longest > t->piece ? t->longest : t->piece;

    return sim_nccl_others_are_absent() ? t->written_count * element_bytes <= SIM_NCCL_ABSENT_BYTES
                                        : longest * element_bytes <= SIM_NCCL_BOARD_BOX_BYTES;
}

/* Exchanges short data. Longer data is not moved, because that would waste host memory. */
static CUresult carry(const struct transfer *t, size_t element_bytes)
{
    if (t->kind == MESSAGE) {
        return copy_message(t, element_bytes);
    }
    if (!is_short(t, element_bytes)) {
        return CUDA_SUCCESS;
    }
    if (t->longest > 0 && t->comm->ranks > 1 && sim_nccl_exchange_is_possible(t->comm, t->stream)) {
        return sim_nccl_exchange_run(t->comm, &(struct sim_nccl_exchange){
                                                  .stream = t->stream,
                                                  .outbox = (CUdeviceptr)t->read,
                                                  .outbox_bytes = t->read_count * element_bytes,
                                                  .inbox = (CUdeviceptr)t->written,
                                                  .piece_bytes = t->piece * element_bytes,
                                                  .from = t->from * element_bytes,
                                                  .source = t->source,
                                                  .receives = t->receives,
                                              });
    }
    return t->receives ? copy_own(t, element_bytes) : CUDA_SUCCESS;
}

/* Takes the memory that NCCL allocates for the first operation that needs a connection. */
static CUresult connect_ranks(const struct transfer *t)
{
    CUresult result = CUDA_SUCCESS;

    switch (t->kind) {
    case MESSAGE:
        return sim_nccl_hold(t->comm, SPW_GPU_PEER, t->peer);
    case MESSAGES:
        for (int peer = 0; peer < t->comm->ranks && result == CUDA_SUCCESS; peer++) {
            result = sim_nccl_hold(t->comm, SPW_GPU_PEER, peer);
        }
        return result;
    case REDUCTION:
        result = sim_nccl_hold(t->comm, SPW_GPU_TREE, 0);
        break;
    case RING:
        break;
    }
    return result == CUDA_SUCCESS ? sim_nccl_hold(t->comm, SPW_GPU_RING, 0) : result;
}

static CUresult launch(const struct transfer *t, size_t element_bytes)
{
    const struct sim_shim_driver *driver = sim_shim_driver();
    struct sim_shim_work work = {.count = 0};
    CUcontext before = NULL;
    CUresult result = driver->cuCtxGetCurrent(&before);

    sim_shim_add_read(&work, t->read, t->read_count * element_bytes);
    sim_shim_add_write(&work, t->written, t->written_count * element_bytes);
    if (result == CUDA_SUCCESS) {
        result = driver->cuCtxSetCurrent(t->comm->context);
    }
    if (result == CUDA_SUCCESS) {
        result = connect_ranks(t);
    }
    if (result == CUDA_SUCCESS) {
        result = sim_shim_launch(t->name, &work, t->stream);
    }
    if (result == CUDA_SUCCESS) {
        result = carry(t, element_bytes);
    }
    (void)driver->cuCtxSetCurrent(before);
    return result;
}

static ncclResult_t run(const struct transfer *t)
{
    size_t element_bytes = type_bytes(t->type);
    CUresult result;
    size_t bytes;

    if (t->comm == NULL || element_bytes == 0 || t->peer < 0 || t->peer >= t->comm->ranks) {
        return sim_nccl_fail(ncclInvalidArgument, "invalid communicator, type or rank");
    }
    if (__builtin_mul_overflow(t->read_count, element_bytes, &bytes) ||
        __builtin_mul_overflow(t->written_count, element_bytes, &bytes)) {
        return sim_nccl_fail(ncclInvalidArgument, "the count is too large");
    }
    if (t->read_count == 0 && t->written_count == 0) {
        return ncclSuccess;
    }
    if ((t->read_count > 0 && t->read == NULL) || (t->written_count > 0 && t->written == NULL)) {
        return sim_nccl_fail(ncclInvalidArgument, "a buffer is NULL");
    }
    result = launch(t, element_bytes);
    if (result == CUDA_ERROR_OUT_OF_MEMORY) {
        return sim_nccl_fail(ncclUnhandledCudaError, "out of device memory for buffers of NCCL");
    }
    return result == CUDA_SUCCESS ? ncclSuccess
                                  : sim_nccl_fail(ncclUnhandledCudaError, "the launch failed");
}

/* The rank and the number of ranks; `comm` may be NULL. */
static int rank_of(ncclComm_t comm)
{
    return comm == NULL ? 0 : comm->rank;
}

static size_t ranks_of(ncclComm_t comm)
{
    return comm == NULL ? 1 : (size_t)comm->ranks;
}

SIM_SHIM_EXPORT ncclResult_t ncclAllReduce(const void *sendbuff, void *recvbuff, size_t count,
                                           ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm,
                                           cudaStream_t stream)
{
    return run(&(struct transfer){REDUCTION, "nccl_all_reduce", comm, datatype, stream,
                                  rank_of(comm), sendbuff, count, recvbuff, count, count, 0, 0,
                                  rank_of(comm), true});
}

SIM_SHIM_EXPORT ncclResult_t ncclReduce(const void *sendbuff, void *recvbuff, size_t count,
                                        ncclDataType_t datatype, ncclRedOp_t op, int root,
                                        ncclComm_t comm, cudaStream_t stream)
{
    bool is_root = rank_of(comm) == root;

    return run(&(struct transfer){RING, "nccl_reduce", comm, datatype, stream, root, sendbuff,
                                  count, recvbuff, is_root ? count : 0, count, 0, 0, root,
                                  is_root});
}

SIM_SHIM_EXPORT ncclResult_t ncclBroadcast(const void *sendbuff, void *recvbuff, size_t count,
                                           ncclDataType_t datatype, int root, ncclComm_t comm,
                                           cudaStream_t stream)
{
    bool is_root = rank_of(comm) == root;

    return run(&(struct transfer){RING, "nccl_broadcast", comm, datatype, stream, root, sendbuff,
                                  is_root ? count : 0, recvbuff, count, count, 0, count, root,
                                  true});
}

SIM_SHIM_EXPORT ncclResult_t ncclBcast(void *buff, size_t count, ncclDataType_t datatype, int root,
                                       ncclComm_t comm, cudaStream_t stream)
{
    return ncclBroadcast(buff, buff, count, datatype, root, comm, stream);
}

SIM_SHIM_EXPORT ncclResult_t ncclReduceScatter(const void *sendbuff, void *recvbuff,
                                               size_t recvcount, ncclDataType_t datatype,
                                               ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream)
{
    return run(&(struct transfer){RING, "nccl_reduce_scatter", comm, datatype, stream,
                                  rank_of(comm), sendbuff, recvcount * ranks_of(comm), recvbuff,
                                  recvcount, recvcount, recvcount * (size_t)rank_of(comm), 0,
                                  rank_of(comm), true});
}

SIM_SHIM_EXPORT ncclResult_t ncclAllGather(const void *sendbuff, void *recvbuff, size_t sendcount,
                                           ncclDataType_t datatype, ncclComm_t comm,
                                           cudaStream_t stream)
{
    return run(&(struct transfer){RING, "nccl_all_gather", comm, datatype, stream, rank_of(comm),
                                  sendbuff, sendcount, recvbuff, sendcount * ranks_of(comm),
                                  sendcount, 0, sendcount, ALL, true});
}

SIM_SHIM_EXPORT ncclResult_t ncclAlltoAll(const void *sendbuff, void *recvbuff, size_t count,
                                          ncclDataType_t datatype, ncclComm_t comm,
                                          cudaStream_t stream)
{
    size_t all = count * ranks_of(comm);

    return run(&(struct transfer){MESSAGES, "nccl_all_to_all", comm, datatype, stream,
                                  rank_of(comm), sendbuff, all, recvbuff, all, count,
                                  count * (size_t)rank_of(comm), all, ALL, true});
}

SIM_SHIM_EXPORT ncclResult_t ncclGather(const void *sendbuff, void *recvbuff, size_t count,
                                        ncclDataType_t datatype, int root, ncclComm_t comm,
                                        cudaStream_t stream)
{
    bool is_root = rank_of(comm) == root;

    return run(&(struct transfer){MESSAGES, "nccl_gather", comm, datatype, stream, root, sendbuff,
                                  count, recvbuff, is_root ? count * ranks_of(comm) : 0, count, 0,
                                  count, ALL, is_root});
}

SIM_SHIM_EXPORT ncclResult_t ncclScatter(const void *sendbuff, void *recvbuff, size_t count,
                                         ncclDataType_t datatype, int root, ncclComm_t comm,
                                         cudaStream_t stream)
{
    size_t all = count * ranks_of(comm);

    return run(&(struct transfer){MESSAGES, "nccl_scatter", comm, datatype, stream, root, sendbuff,
                                  rank_of(comm) == root ? all : 0, recvbuff, count, count,
                                  count * (size_t)rank_of(comm), all, root, true});
}

/* Messages between two ranks are not delivered. If the other ranks are absent, a message that this
 * rank sends replaces the message that it would receive. */
SIM_SHIM_EXPORT ncclResult_t ncclSend(const void *sendbuff, size_t count, ncclDataType_t datatype,
                                      int peer, ncclComm_t comm, cudaStream_t stream)
{
    return run(&(struct transfer){.kind = MESSAGE,
                                  .name = "nccl_send",
                                  .comm = comm,
                                  .type = datatype,
                                  .stream = stream,
                                  .peer = peer,
                                  .read = sendbuff,
                                  .read_count = count});
}

SIM_SHIM_EXPORT ncclResult_t ncclRecv(void *recvbuff, size_t count, ncclDataType_t datatype,
                                      int peer, ncclComm_t comm, cudaStream_t stream)
{
    return run(&(struct transfer){.kind = MESSAGE,
                                  .name = "nccl_recv",
                                  .comm = comm,
                                  .type = datatype,
                                  .stream = stream,
                                  .peer = peer,
                                  .written = recvbuff,
                                  .written_count = count});
}

/* The operator's scalar is not used, because collectives compute nothing. The handle only has to
 * differ from the handles of the built-in operators. */
SIM_SHIM_EXPORT ncclResult_t ncclRedOpCreatePreMulSum(ncclRedOp_t *op, void *scalar,
                                                      ncclDataType_t datatype,
                                                      ncclScalarResidence_t residence,
                                                      ncclComm_t comm)
{
    if (op == NULL || scalar == NULL || comm == NULL || type_bytes(datatype) == 0) {
        return sim_nccl_fail(ncclInvalidArgument, "invalid operator, scalar, type or communicator");
    }
    *op = ncclNumOps;
    return ncclSuccess;
}

SIM_SHIM_EXPORT ncclResult_t ncclRedOpDestroy(ncclRedOp_t op, ncclComm_t comm)
{
    return comm != NULL && (int)op >= ncclNumOps
               ? ncclSuccess
               : sim_nccl_fail(ncclInvalidArgument, "not an operator that was created");
}

SIM_NCCL_ALIAS(AllReduce)
SIM_NCCL_ALIAS(Reduce)
SIM_NCCL_ALIAS(Broadcast)
SIM_NCCL_ALIAS(Bcast)
SIM_NCCL_ALIAS(ReduceScatter)
SIM_NCCL_ALIAS(AllGather)
SIM_NCCL_ALIAS(AlltoAll)
SIM_NCCL_ALIAS(Gather)
SIM_NCCL_ALIAS(Scatter)
SIM_NCCL_ALIAS(Send)
SIM_NCCL_ALIAS(Recv)
SIM_NCCL_ALIAS(RedOpCreatePreMulSum)
SIM_NCCL_ALIAS(RedOpDestroy)
