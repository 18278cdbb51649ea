/* Captures, and the blocks that CUDA graphs use. It does not know the handlers of calls.
 *
 *   capture   stream captures that are open
 *   graph     the blocks of each graph, and their places at a launch
 *   state     the tables of this folder
 *   uses      reads the blocks that one graph names from its nodes
 *
 * From the beginning of a capture until its graph is made executable or destroyed, every live block
 * keeps its place; likewise while there is an executable graph whose nodes cannot be read. For a
 * graph that was read, some blocks keep their places (graph_uses.h) until the last such graph is
 * destroyed. The others may move, and a launch first brings them back to the device. A block
 * without room there is used on the host, at the same addresses.
 *
 * Blocks that a kernel finds by addresses in memory may move, as without a graph: their addresses
 * stay the same, and no move falls into a launch.
 *
 * Locking: spw_locks.graphs, under which the pools' locks are taken. The driver is asked about
 * nodes without it. */
#pragma once

#include <stdbool.h>

#include "driver/cuda_api.h"

/* The blocks that one executable graph names. */
struct spw_graph_uses;

/* Keeps every block that lives now in its place, until no capture and no graph requires it. */
void spw_graph_fix_all(void);

/* Ends that, unless a capture is open, a captured graph is neither executable nor destroyed, or the
 * nodes of a graph could not be read. */
void spw_graph_settle(void);

/* Notes the graph of a capture that has ended. To be called before the capture counts as ended. */
void spw_graph_captured(CUgraph graph);

/* Forgets a graph before it is destroyed, since the driver may give its handle to another one at
 * once. True when it was captured; spw_graph_settle must follow, or, if it was not destroyed,
 * spw_graph_captured. */
bool spw_graph_forget(CUgraph graph);

/* Called before the driver makes or changes an executable graph: no block moves until the end. */
void spw_graph_instantiate_begin(void);

/* To be called after that, with the executable graph of `graph`, or with NULL after an error.
 * `from_device`: kernels can launch it. */
void spw_graph_instantiate_end(CUgraphExec executable, CUgraph graph, bool from_device);

/* Notes that the program set parameters of an executable graph's nodes. They are not read, so the
 * graph may name any block. */
void spw_graph_changed(CUgraphExec executable);

/* Takes out the uses of an executable graph before it is destroyed, since the driver may give its
 * handle to another one at once. The blocks keep their places. NULL when no uses are known. */
struct spw_graph_uses *spw_graph_take(CUgraphExec executable);

/* Ends these uses: the graph was destroyed. */
void spw_graph_drop(struct spw_graph_uses *uses);

/* Puts these uses back: the graph was not destroyed. */
void spw_graph_put_back(CUgraphExec executable, struct spw_graph_uses *uses);

/* Reports to the pools that an executable graph on this stream is about to use their memory
 * (program/users.h); to all pools if its blocks are not known. */
void spw_graph_note_users(CUgraphExec executable, CUstream stream, bool per_thread);

/* Before a launch of an executable graph: brings its blocks back, and reports their use to the host
 * tiers. To be called before the submit barrier is acquired. NULL when its blocks are not known;
 * otherwise spw_graph_note must follow. */
struct spw_graph_uses *spw_graph_expect(CUgraphExec executable, CUstream stream, bool per_thread);

/* Notes the use in the access logs and in the recording, and releases `uses`. To be called between
 * acquiring the submit barrier and the launch. */
void spw_graph_note(struct spw_graph_uses *uses);

/* In a child after fork: there are no graphs. */
void spw_graph_reset(void);
