/* The blocks that one CUDA graph names, read from the parameters of its nodes.
 *
 * A driver may keep facts about the operands of copies and fills that it found when it made the
 * graph executable, and a copy must not cross from device to host memory (submit/parts.h). So the
 * blocks that these nodes name keep their places while the executable graph exists. A kernel
 * reaches memory by its addresses, whatever lies behind them: the blocks that only kernels name may
 * move between launches. They also stay if a kernel may use more than it names, since a library
 * such as NCCL may have registered the memory behind these addresses during the capture; in graphs
 * that kernels can launch; and with SPILLWAY_GRAPHS=stay.
 *
 * Locking: the owner's lock, except for the last members. The lists do not change once they are
 * read and entered. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "driver/cuda_api.h"

/* The first addresses of blocks: in order, each once. */
struct spw_graph_blocks {
    size_t count, capacity;
    uint64_t *addresses;
};

struct spw_graph_uses {
    int ordinal;      /* of the current device, for the counts of our driver calls; -1: none */
    bool known;       /* it names no other blocks */
    bool direct;      /* its kernels show no use of memory that they do not name */
    bool from_device; /* kernels can launch it */
    struct spw_graph_blocks named;
    struct spw_graph_blocks kept; /* those of them that keep their places */
    size_t references; /* launches under way that read `named`, and 1 while it is listed */
    /* Without a lock: */
    _Atomic bool launched;
    _Atomic uint64_t whole_since; /* spilled bytes of all devices when all blocks were on theirs */
};

/* Reads a graph that is about to be, or was, made executable. The driver is asked about its nodes.
 * NULL without memory. The caller owns it, with one reference. */
struct spw_graph_uses *spw_graph_uses_read(CUgraph graph, bool from_device);

/* Takes NULL. */
void spw_graph_uses_free(struct spw_graph_uses *uses);
