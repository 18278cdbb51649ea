/* The tables of captures and graphs. All zero bytes is the state before the start.
 *
 * The comment of a table names the lock that guards it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/map.h"
#include "driver/cuda_api.h"

enum { SPW_CAPTURES = 256 };

/* The open captures. If more than SPW_CAPTURES captures are open, those beyond this number stay
 * counted forever. This only costs a driver call for each allocation. Guarded by
 * spw_locks.captures. */
struct spw_captures {
    struct spw_capture {
        uint64_t id;      /* the stream's */
        uintptr_t thread; /* the thread that began the capture */
        CUstreamCaptureMode mode;
    } open[SPW_CAPTURES];
    size_t count;
};

/* CUDA graphs that may name blocks (graph/graph.h). Guarded by spw_locks.graphs. */
struct spw_graphs {
    struct spw_map captured; /* by handle: graphs that were captured, but not yet made executable or
                                destroyed */
    struct spw_map executables; /* by handle: struct spw_graph_uses */
    struct spw_map named;       /* struct graph_count by address of a block */
    size_t unreadable;          /* executable graphs that may name any block */
    bool unreadable_reported;   /* the message about the first such graph was logged */
};

struct spw_graph {
    struct spw_captures captures;
    struct spw_graphs graphs;
};

extern struct spw_graph spw_graph;
