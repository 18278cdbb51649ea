/* The cost model of SPILLWAY_SIM_TIME: how long calls and work take.
 *
 * Off, every call takes a step of one microsecond and work takes none. On, a call takes the host
 * what costs.def says, and work takes the device:
 *   copies     the bytes that cross the link, at 50 GB/s in each direction, or what
 *              SPILLWAY_SIM_LINK says, on which the next figures depend as well; each direction of
 *              a device is one engine, which does one copy after the other, in the order in which
 *              they become ready. Within the device: 4.3 TB/s for what is read and written
 *   kernels    the time they name themselves (spw_touch_NAME), else the bytes they touch at
 *              4.3 TB/s and 2 us at least; and on top the bytes that they touch on the host, over
 *              the link, at 35 GB/s read and 52.8 GB/s written
 *   fills      as kernels, without the least
 *   the rest   nothing
 * A kernel whose arguments are addresses without extents is taken to read all that follows in their
 * blocks, as far as these are known (program_block.h), else 16 bytes a thread; of the words in
 * structs, those count that are addresses in blocks. Kernels of different streams do not slow each
 * other down, nor do copies slow kernels that use the link. The rates are published measurements on
 * PCIe 5 x16 and of an H200's memory.
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
    uint64_t out_bytes;    /* and from it */
};

/* When an operation runs, in virtual nanoseconds, and what it moves. */
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
    uint64_t host_chunks; /* those of the host among them */
    uint64_t host_bytes;
};

/* The time that a call on chunks takes beyond sim_timing_of_call, in nanoseconds. */
uint64_t sim_timing_of_chunks(enum sim_fn fn, const struct sim_covered *covered);

/* True if a call costs nothing and so does not end a polling loop, see costs.def. */
bool sim_timing_is_free(enum sim_fn fn);

/* The time that creating a chunk of page-locked host memory takes beside the call, in
 * nanoseconds. */
uint64_t sim_timing_of_pinning(uint64_t bytes);

/* The operation is ready at `now`: takes the engines that it needs from the time when they are
 * free. */
struct sim_timing sim_timing_start(const struct sim_op *op, uint64_t now);
