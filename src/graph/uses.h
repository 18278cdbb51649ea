/* The blocks that one CUDA graph names, read from the parameters of its nodes.
 *
 * When a driver makes a graph executable, it may store facts about the operands of copies and
 * fills. Moreover, a copy must not cross from device to host memory (submit/parts.h). So the blocks
 * that nodes for copies and fills name keep their places while the executable graph exists. A
 * kernel reaches memory by address, whatever lies behind the address, so blocks that only kernels
 * name may move between launches. There are three exceptions. Blocks stay if a kernel may use more
 * memory than it names, since a library such as NCCL may have registered the memory behind these
 * addresses during the capture. They stay in graphs that kernels can launch, and with
 * SPILLWAY_GRAPHS=stay.
 *
 * Locking: the owner's lock, except for the last two members. The lists do not change once they are
 * read and entered. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "driver/cuda_api.h"

/* The first address of each block, in ascending order. */
struct spw_graph_blocks {
    size_t count, capacity;
    uint64_t *addresses;
};

struct spw_graph_uses {
    int ordinal;      /* of the current device, to count our driver calls; -1: none */
    bool known;       /* the graph names no other blocks */
    bool direct;      /* its kernels show no use of memory that they do not name */
    bool from_device; /* kernels can launch it */
    struct spw_graph_blocks named;
    struct spw_graph_blocks kept; /* the blocks of `named` that keep their places */
    size_t references; /* launches that are reading `named`, plus 1 while this is listed */
    /* Without a lock: */
    _Atomic bool launched;
    _Atomic uint64_t whole_since; /* all devices' spilled bytes when no block was on the host */
};

/* Reads a graph that is about to be, or was, made executable. The driver is asked about its nodes.
 * NULL without memory. The caller owns the result, with one reference. */
struct spw_graph_uses *spw_graph_uses_read(CUgraph graph, bool from_device);

/* Takes NULL. */
void spw_graph_uses_free(struct spw_graph_uses *uses);
