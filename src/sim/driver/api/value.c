/* Stream memory operations: a stream writes a word, or waits until a word meets a condition. */
#include "sim/driver/api/entry.h"
#include "sim/driver/exec/schedule.h"
#include "sim/driver/graph/submit.h"
#include "sim/driver/memory/content.h"

struct value_op {
    struct sim_op op;
    CUdeviceptr address;
    uint64_t value;
    unsigned int size;      /* 4 or 8 */
    unsigned int condition; /* of a wait: CU_STREAM_WAIT_VALUE_* without the flush bit */
};

static enum sim_outcome write_run(struct sim_op *op, struct sim_item *item)
{
    const struct value_op *self = (const struct value_op *)op;

    sim_mem_write(self->address, &self->value, self->size);
    return SIM_DONE;
}

static bool is_fulfilled(const struct value_op *self, uint64_t now)
{
    uint64_t all = self->size == 4 ? UINT32_MAX : UINT64_MAX;

    switch (self->condition) {
    case CU_STREAM_WAIT_VALUE_EQ:
        return now == self->value;
    case CU_STREAM_WAIT_VALUE_AND:
        return (now & self->value) != 0;
    case CU_STREAM_WAIT_VALUE_NOR:
        return (~(now | self->value) & all) != 0;
    default: /* GEQ, cyclic: the difference is not negative */
        return self->size == 4 ? (int32_t)((uint32_t)now - (uint32_t)self->value) >= 0
                               : (int64_t)(now - self->value) >= 0;
    }
}

static enum sim_outcome wait_run(struct sim_op *op, struct sim_item *item)
{
    const struct value_op *self = (const struct value_op *)op;

    if (is_fulfilled(self, sim_op_poll(self->address, self->size))) {
        return SIM_DONE;
    }
    item->polls = true;
    return SIM_BLOCKED;
}

static const struct sim_op_class write_class = {
    .name = "write value",
    .node_type = CU_GRAPH_NODE_TYPE_BATCH_MEM_OP,
    .run = write_run,
};

static const struct sim_op_class wait_class = {
    .name = "wait value",
    .node_type = CU_GRAPH_NODE_TYPE_BATCH_MEM_OP,
    .run = wait_run,
};

static CUresult value_op_new(const struct sim_op_class *class, int device, CUdeviceptr address,
                             uint64_t value, unsigned int size, unsigned int condition,
                             struct sim_op **ret_op)
{
    enum sim_mem_kind kind = sim_mem_kind(address);
    struct value_op *self;
    CUresult result;

    if (address % size != 0 || (kind != SIM_MEM_DEVICE && kind != SIM_MEM_PINNED)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    self = sim_op_new(class, sizeof(*self), device);
    if (self == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    self->address = address;
    self->value = value;
    self->size = size;
    self->condition = condition;
    result =
        sim_op_add_span(&self->op, (struct sim_span){address, size, class == &write_class, true});
    return sim_op_seal(&self->op, result, ret_op);
}

static CUresult write_value(struct sim_stream *stream, CUdeviceptr address, uint64_t value,
                            unsigned int size, unsigned int flags)
{
    struct sim_op *op;
    CUresult result;

    if ((flags & ~(unsigned int)CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER) != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    result = value_op_new(&write_class, sim_stream_device(stream), address, value, size, 0, &op);
    return result == CUDA_SUCCESS ? sim_submit_new(stream, op) : result;
}

static CUresult wait_value(struct sim_stream *stream, CUdeviceptr address, uint64_t value,
                           unsigned int size, unsigned int flags)
{
    unsigned int condition = flags & ~(unsigned int)CU_STREAM_WAIT_VALUE_FLUSH;
    struct sim_op *op;
    CUresult result;

    if (condition > CU_STREAM_WAIT_VALUE_NOR) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    result =
        value_op_new(&wait_class, sim_stream_device(stream), address, value, size, condition, &op);
    return result == CUDA_SUCCESS ? sim_submit_new(stream, op) : result;
}

/* Both ABIs of each function do the same. */
#define VALUE_FUNCTION(name, type, what, size)                                                     \
    SIM_API_PTSZ(name, SIM_CONTEXT,                                                                \
                 (CUstream hStream, CUdeviceptr addr, type value, unsigned int flags))             \
    {                                                                                              \
        struct sim_stream *stream;                                                                 \
        CUresult result = sim_stream_resolve(hStream, ptsz, &stream);                              \
                                                                                                   \
        return result == CUDA_SUCCESS ? what(stream, addr, value, size, flags) : result;           \
    }

VALUE_FUNCTION(cuStreamWriteValue32, cuuint32_t, write_value, 4)
VALUE_FUNCTION(cuStreamWriteValue32_v2, cuuint32_t, write_value, 4)
VALUE_FUNCTION(cuStreamWriteValue64, cuuint64_t, write_value, 8)
VALUE_FUNCTION(cuStreamWriteValue64_v2, cuuint64_t, write_value, 8)
VALUE_FUNCTION(cuStreamWaitValue32, cuuint32_t, wait_value, 4)
VALUE_FUNCTION(cuStreamWaitValue32_v2, cuuint32_t, wait_value, 4)
VALUE_FUNCTION(cuStreamWaitValue64, cuuint64_t, wait_value, 8)
VALUE_FUNCTION(cuStreamWaitValue64_v2, cuuint64_t, wait_value, 8)
#undef VALUE_FUNCTION

static CUresult one_of_batch(struct sim_stream *stream, const CUstreamBatchMemOpParams *params)
{
    switch (params->operation) {
    case CU_STREAM_MEM_OP_WAIT_VALUE_32:
        return wait_value(stream, params->waitValue.address, params->waitValue.value, 4,
                          params->waitValue.flags);
    case CU_STREAM_MEM_OP_WAIT_VALUE_64:
        return wait_value(stream, params->waitValue.address, params->waitValue.value64, 8,
                          params->waitValue.flags);
    case CU_STREAM_MEM_OP_WRITE_VALUE_32:
        return write_value(stream, params->writeValue.address, params->writeValue.value, 4,
                           params->writeValue.flags);
    case CU_STREAM_MEM_OP_WRITE_VALUE_64:
        return write_value(stream, params->writeValue.address, params->writeValue.value64, 8,
                           params->writeValue.flags);
    case CU_STREAM_MEM_OP_BARRIER:
    case CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES:
        return CUDA_SUCCESS; /* writes are always ordered here */
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

SIM_API_PTSZ(cuStreamBatchMemOp, SIM_CONTEXT,
             (CUstream hStream, unsigned int count, CUstreamBatchMemOpParams *paramArray,
              unsigned int flags))
{
    struct sim_stream *stream;
    CUresult result;

    /* cuda.h: at most 256 operations. */
    if (flags != 0 || count > 256 || (count > 0 && paramArray == NULL)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    result = sim_stream_resolve(hStream, ptsz, &stream);
    for (unsigned int i = 0; i < count && result == CUDA_SUCCESS; i++) {
        result = one_of_batch(stream, &paramArray[i]);
    }
    return result;
}

SIM_API_SAME(cuStreamBatchMemOp_v2, cuStreamBatchMemOp);
