/* The cost model of SPILLWAY_SIM_TIME: the duration of calls and work.
 *
 * Without this option, every call takes one microsecond and work takes no time. With it, a call
 * takes the time in costs.def on the host, and work takes the following time on the device:
 *   copies     the time of the bytes that cross the link, at 50 GB/s in each direction, or of
 *              those read and written in device memory, at 4.3 TB/s, whichever is longer.
 *              SPILLWAY_SIM_LINK sets the rate of the link, and changes the link's other rates in
 *              proportion; SPILLWAY_SIM_LINK_OUT sets those from the device. Each direction of a
 *              device is one engine, which executes copies one by one, in the order in which they
 *              become ready
 *   kernels    the time in their arguments (spw_touch_NAME) or, without one, the time of the bytes
 *              in device memory that they touch, at 4.3 TB/s, but at least 2 us. The time of the
 *              bytes in host memory is added: 35 GB/s for reads, 52.8 GB/s for writes
 *   fills      as kernels, without the minimum
 *              With SPILLWAY_SIM_RATES=card, kernels and fills take the time of the card's roofline
 *              (roofline.h) in place of these times in device memory
 *   the rest   nothing
 * For most kernels, the size of the memory behind an argument is unknown. Such a kernel is assumed
 * to read from each address to the end of the block that contains the address (program_block.h). If
 * no block contains the address, the kernel is assumed to read 16 bytes for each thread. A word in
 * a struct counts as an address if it lies in a block. Kernels of different streams do not slow
 * each other down, and copies do not slow kernels that use the link. The rates are published
 * measurements of PCIe 5 x16 and of an H200's memory.
 *
 * Locking: the simulator's lock (core/lock.h) is held. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "sim/driver/core/functions.h"
#include "sim/driver/exec/op.h"

enum {
    SIM_CALL_NS = 200, /* a call that costs.def does not list */
};

/* Bytes that an operation moves. */
struct sim_traffic {
    uint64_t device_bytes; /* read and written in device memory */
    uint64_t in_bytes;     /* over the link to the device */
    uint64_t out_bytes;    /* over the link from the device */
};

/* When an operation begins and ends, in virtual nanoseconds, and the bytes that it moves. */
struct sim_timing {
    uint64_t begin;
    uint64_t end;
    struct sim_traffic traffic;
};

/* The time that a call takes on the host, in nanoseconds. */
uint64_t sim_timing_of_call(enum sim_fn fn);

/* Chunks that a call covers. */
struct sim_covered {
    uint64_t chunks; /* of both tiers */
    uint64_t bytes;
    uint64_t host_chunks; /* the chunks in host memory */
    uint64_t host_bytes;
};

/* The time that a call on chunks takes beyond sim_timing_of_call, in nanoseconds. */
uint64_t sim_timing_of_chunks(enum sim_fn fn, const struct sim_covered *covered);

/* True if a call costs no time. Such a call does not end a polling loop (costs.def). */
bool sim_timing_is_free(enum sim_fn fn);

/* The additional time to create a chunk of page-locked host memory, in nanoseconds. */
uint64_t sim_timing_of_pinning(uint64_t bytes);

/* Starts an operation that is ready at `now`: the operation occupies its engines as soon as they
 * are free. */
struct sim_timing sim_timing_start(const struct sim_op *op, uint64_t now);
