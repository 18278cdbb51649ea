/* The blocks that one CUDA graph names, read from the parameters of its nodes.
 *
 * When a driver makes a graph executable, it may store facts about the operands of copies and
 * fills. In addition, a copy must not cross from device to host memory (submit/parts.h). Blocks
 * that are named by copy or fill nodes therefore stay fixed while the executable graph exists.
 * Kernels access memory by its address, whichever tier the memory is in. Blocks that are named only
 * by kernel nodes may therefore move between launches, with three exceptions. A kernel may also use
 * memory that it does not name, for example memory that NCCL registered during the capture. In this
 * case, blocks stay fixed. Blocks also stay fixed in graphs that kernels can launch, and with
 * SPILLWAY_GRAPHS=stay.
 *
 * Locking: the lock of the owner, except for the last two members. The lists do not change after
 * they were read and entered. */
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
    int ordinal; /* ordinal of the current device, which counts the driver calls of spillway; -1:
                    none */
    bool known;  /* the graph names no blocks beyond those listed */
    bool direct; /* its kernels show no sign of using memory that they do not name */
    bool from_device; /* kernels can launch the graph */
    struct spw_graph_blocks named;
    struct spw_graph_blocks kept; /* the blocks of `named` that stay fixed */
    size_t references; /* launches that read `named` now, plus 1 while the graph is in the table */
    /* Used without a lock: */
    _Atomic uint64_t whole_since; /* spilled bytes of all devices at a time when no block of the
                                     graph was on the host */
};

/* Reads a graph that is about to be made executable, or was just made executable. Asks the driver
 * about the graph's nodes. Returns NULL if there is no memory. The caller owns the result, with one
 * reference. */
struct spw_graph_uses *spw_graph_uses_read(CUgraph graph, bool from_device);

/* Frees the uses. Takes NULL. */
void spw_graph_uses_free(struct spw_graph_uses *uses);
