/* Runs work: streams, events, copies, in virtual time. It does not know kernels and graphs.
 *
 *   callback          queued calls of the program's functions
 *   callback_thread   the thread that makes these calls
 *   copy              copies as operations
 *   copy_shape        converts cuda.h's descriptions of copies
 *   costs             the host time of calls, for the cost model
 *   costs_h100        the host time of calls on virtual memory, as on an H100
 *   crossing          copies and fills that cross from device to host memory
 *   event             events and their records
 *   fence             points in streams that later work waits for
 *   host_call         functions of the program as operations
 *   memset            fills as operations
 *   meter             estimates the time of the program's steps, beside the clock
 *   op                operations: the units of work of streams and graphs
 *   period            finds the period of the launches
 *   poll_loop         detects a thread that only polls
 *   roofline          the time of a kernel on a card
 *   schedule          runs pending work in virtual time
 *   stream            queues of operations
 *   timing            the cost model
 *   work              waits for the work of a context
 *   work_context      streams, events, modules and local memory of a context
 *
 * A submitted operation does not change. Stream queues, graphs under construction and executable
 * graphs share operations by reference. Each kind of operation is a struct that begins with `struct
 * sim_op`, in a file of its own.
 *
 * Locking: the simulator's lock (core/lock.h) is held. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cuda.h>

#include "sim/demand.h"

struct sim_item;
struct sim_op;
struct sim_stream;

/* Result of running an operation. */
enum sim_outcome {
    SIM_DONE,
    SIM_BLOCKED, /* waits for a host function or a change of memory; must be run again later */
    SIM_FAULT,   /* an address was bad: the context fails with CUDA_ERROR_ILLEGAL_ADDRESS */
};

struct sim_op_class {
    const char *name; /* in the log */
    CUgraphNodeType node_type;
    /* Runs even if the context has failed or is ending. */
    bool always;
    /* Executes the operation. The caller has checked the memory that the operation names. NULL:
     * nothing to do. */
    enum sim_outcome (*run)(struct sim_op *op, struct sim_item *item);
    /* Submits a graph node of this kind to a stream when the graph is launched. NULL: the operation
     * itself is queued. */
    CUresult (*launch)(struct sim_op *op, struct sim_stream *stream);
    /* Frees item->state, even if the item is not complete. Required if run() sets item->state. */
    void (*release)(struct sim_item *item);
    /* Frees the members of the operation, not the struct. NULL: nothing to free. */
    void (*fini)(struct sim_op *op);
};

/* Memory that an operation reads or writes. It is in use from submission to completion. */
struct sim_span {
    CUdeviceptr address;
    size_t size;
    bool write;
    bool owner_suffices; /* access by the device that owns the memory is enough */
};

/* Memory that an operation is assumed to read when only a word in its arguments is known. The word
 * may not be an address at all. The memory therefore counts for simulated time, but is neither
 * checked nor counted as in use. */
struct sim_reach {
    CUdeviceptr address;
    size_t size;
};

struct sim_op {
    const struct sim_op_class *class;
    unsigned int refs;
    int device;        /* ordinal of the device that executes it */
    const char *label; /* in the log beside the name of the class; may be NULL. Not owned */
    struct sim_span *spans;
    size_t span_count;
    struct sim_reach *reaches; /* NULL: the bytes moved are those of the spans */
    size_t reach_count;
    uint64_t nanoseconds; /* time to compute; 0: timing.h derives it from the bytes moved */
    struct sim_demand demand;
    uint64_t key; /* equal for launches of the same kernel with the same grid; 0: not a launch */
};

/* Creates a zeroed operation of `size` bytes with one reference. The operation is a struct that
 * begins with struct sim_op. NULL if host memory is exhausted. */
void *sim_op_new(const struct sim_op_class *class, size_t size, int device);

/* Takes a reference. */
struct sim_op *sim_op_ref(struct sim_op *op);

/* Drops a reference. The operation is freed when the last reference is dropped. NULL is ignored. */
void sim_op_unref(struct sim_op *op);

/* The demand of an operation. If only its memory is named, the demand is to move this memory. */
struct sim_demand sim_op_demand(const struct sim_op *op);

/* Adds a span. Empty spans and pageable host memory are left out. CUDA_ERROR_OUT_OF_MEMORY. */
CUresult sim_op_add_span(struct sim_op *op, struct sim_span span);

/* Adds a reach, once for each address. CUDA_ERROR_OUT_OF_MEMORY. */
CUresult sim_op_add_reach(struct sim_op *op, struct sim_reach reach);

/* CUDA_ERROR_ILLEGAL_ADDRESS unless all memory that the operation names is valid now. */
CUresult sim_op_check(const struct sim_op *op);

/* Completes the creation of an operation. `result` is the result of adding its spans. Returns
 * CUDA_ERROR_INVALID_VALUE if a span is not valid now. On any error, including an error in
 * `result`, drops the operation. */
CUresult sim_op_seal(struct sim_op *op, CUresult result, struct sim_op **ret_op);

/* True if the operation names part of [address, address + size). */
bool sim_op_uses(const struct sim_op *op, CUdeviceptr address, size_t size);

/* Reads the aligned word of 4 or 8 bytes that an operation waits for. The read is atomic, because
 * the host may write page-locked memory at any time, without a call. */
uint64_t sim_op_poll(CUdeviceptr address, unsigned int size);

/* Create an operation without effect, and an operation that calls `run(arg)` exactly once with the
 * lock held. */
struct sim_op *sim_op_new_empty(int device);
struct sim_op *sim_op_new_call(int device, void (*run)(void *arg), void *arg);
