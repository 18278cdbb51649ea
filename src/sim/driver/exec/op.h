/* Operations: what a stream or a graph can be asked to do (copy, fill, run a kernel, call the
 * host).
 *
 * An operation does not change once it was submitted; the queue of a stream, a graph under
 * construction and executable graphs share it by reference. Each kind is a struct that begins with
 * `struct sim_op`, in the file of its concept.
 *
 * Locking: the simulator's lock (core/lock.h) is held. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cuda.h>

struct sim_item;
struct sim_op;
struct sim_stream;

/* Result of running an operation. */
enum sim_outcome {
    SIM_DONE,
    SIM_BLOCKED, /* waits for something that is not in its stream; to be tried again */
    SIM_FAULT,   /* an address was bad: the context fails with CUDA_ERROR_ILLEGAL_ADDRESS */
};

struct sim_op_class {
    const char *name; /* in the log */
    CUgraphNodeType node_type;
    /* Run also, not skipped, when the context has failed or goes away. */
    bool always;
    /* Does it. The memory it names was checked. NULL: nothing to do. */
    enum sim_outcome (*run)(struct sim_op *op, struct sim_item *item);
    /* How a graph node of this kind is given to a stream when the graph is launched. NULL: it is
     * queued. */
    CUresult (*launch)(struct sim_op *op, struct sim_stream *stream);
    /* Frees what item->state refers to, done or not; needed where run() sets it. */
    void (*release)(struct sim_item *item);
    /* Frees what the operation owns, not the struct itself. NULL: nothing. */
    void (*fini)(struct sim_op *op);
};

/* Memory an operation reads or writes: in use from submission to completion. */
struct sim_span {
    CUdeviceptr address;
    size_t size;
    bool write;
    bool owner_suffices; /* valid as well if the device that owns the memory may access it */
};

/* Memory that an operation is taken to read when time is simulated, where all that is known of it
 * is an address. That may be one by chance, so it is neither checked nor in use. */
struct sim_reach {
    CUdeviceptr address;
    size_t size;
};

struct sim_op {
    const struct sim_op_class *class;
    unsigned int refs;
    int device;        /* ordinal of the device that does it */
    const char *label; /* in the log beside the name of the class; may be NULL. Not owned */
    struct sim_span *spans;
    size_t span_count;
    struct sim_reach *reaches; /* NULL: the spans say what is used */
    size_t reach_count;
    uint64_t nanoseconds; /* what it computes then; 0: told by its bytes, see timing.h */
};

/* A new operation of `size` bytes (a struct that begins with struct sim_op), zeroed, with one
 * reference. NULL when host memory is out. */
void *sim_op_new(const struct sim_op_class *class, size_t size, int device);

/* Takes a reference. */
struct sim_op *sim_op_ref(struct sim_op *op);

/* Drops a reference; frees the operation with the last one. NULL is ignored. */
void sim_op_unref(struct sim_op *op);

/* Names memory. Empty spans and pageable host memory are left out. CUDA_ERROR_OUT_OF_MEMORY. */
CUresult sim_op_add_span(struct sim_op *op, struct sim_span span);

/* Adds a reach, once for each address. CUDA_ERROR_OUT_OF_MEMORY. */
CUresult sim_op_add_reach(struct sim_op *op, struct sim_reach reach);

/* CUDA_SUCCESS if all memory that the operation names is valid now, else
 * CUDA_ERROR_ILLEGAL_ADDRESS. */
CUresult sim_op_check(const struct sim_op *op);

/* The end of making an operation, whose spans were added with `result`: a span that is not valid
 * now is CUDA_ERROR_INVALID_VALUE, and after any error the operation is given up. */
CUresult sim_op_seal(struct sim_op *op, CUresult result, struct sim_op **ret_op);

/* True if the operation names part of [address, address + size). */
bool sim_op_uses(const struct sim_op *op, CUdeviceptr address, size_t size);

/* The aligned word of 4 or 8 bytes that an operation waits for. Page-locked memory may be written
 * by the host at any time, without a call, so it is read atomically. */
uint64_t sim_op_poll(CUdeviceptr address, unsigned int size);

/* An operation without effect, and one that runs `run(arg)` with the lock held, always once. */
struct sim_op *sim_op_new_empty(int device);
struct sim_op *sim_op_new_call(int device, void (*run)(void *arg), void *arg);
