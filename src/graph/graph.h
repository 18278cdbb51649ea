/* Captures, and the blocks that CUDA graphs use. It does not know the handlers of calls.
 *
 *   capture   stream captures that are open
 *   graph     the blocks of each graph, and their places at a launch
 *   state     the tables of this folder
 *   uses      reads the blocks that one graph names from its nodes
 *
 * Every live block keeps its place from the beginning of a capture until its graph is made
 * executable or destroyed, and while there is an executable graph whose nodes cannot be read. If
 * the nodes can be read, some blocks that the graph names keep their places while it exists
 * (uses.h). Its other blocks may move; a launch first brings them back to the device. A block for
 * which the device has no room is used on the host, at the same addresses.
 *
 * Blocks that a kernel finds by addresses in memory may move, as without a graph: the blocks'
 * addresses stay the same, and no move takes place during a launch.
 *
 * Locking: spw_locks.graphs, under which the pools' locks are taken. The driver is asked about
 * nodes without that lock. */
#pragma once

#include <stdbool.h>

#include "driver/cuda_api.h"

/* The blocks that one executable graph names. */
struct spw_graph_uses;

/* Keeps every block that lives now in its place, until no capture and no graph requires it. */
void spw_graph_fix_all(void);

/* Ends the effect of spw_graph_fix_all, unless a capture is open, a captured graph is neither
 * executable nor destroyed yet, or the nodes of a graph could not be read. */
void spw_graph_settle(void);

/* Notes the graph that a capture made. To be called before spw_graph_capture_end. */
void spw_graph_captured(CUgraph graph);

/* Forgets a graph before it is destroyed, since the driver may give its handle to another graph at
 * once. True when the graph was captured. Then spw_graph_settle must follow the destruction, or
 * spw_graph_captured if that failed. */
bool spw_graph_forget(CUgraph graph);

/* Called before the driver makes or changes an executable graph: no block moves until
 * spw_graph_instantiate_end. */
void spw_graph_instantiate_begin(void);

/* To be called afterwards, with the executable graph of `graph`, or with NULL after an error.
 * `from_device`: kernels can launch it. */
void spw_graph_instantiate_end(CUgraphExec executable, CUgraph graph, bool from_device);

/* Notes that the program set parameters of an executable graph's nodes. These parameters are not
 * read, so from now on the graph may name any block. */
void spw_graph_changed(CUgraphExec executable);

/* Takes out the uses of an executable graph before it is destroyed, since the driver may give its
 * handle to another graph at once. The blocks keep their places. NULL when no uses are known. */
struct spw_graph_uses *spw_graph_take(CUgraphExec executable);

/* Ends uses that spw_graph_take returned, after the graph was destroyed. */
void spw_graph_drop(struct spw_graph_uses *uses);

/* Puts back uses that spw_graph_take returned, if the graph was not destroyed. */
void spw_graph_put_back(CUgraphExec executable, struct spw_graph_uses *uses);

/* Reports to the pools that an executable graph on this stream is about to use their memory
 * (program/users.h); to all pools if its blocks are not known. */
void spw_graph_note_users(CUgraphExec executable, CUstream stream, bool per_thread);

/* Before a launch of an executable graph: brings its blocks back, and reports their use to the host
 * tiers. To be called before the submit barrier is acquired. NULL when its blocks are not known;
 * otherwise spw_graph_note must follow. */
struct spw_graph_uses *spw_graph_expect(CUgraphExec executable, CUstream stream, bool per_thread);

/* Notes the use in the access logs and in the recording, and releases `uses`. To be called after
 * the submit barrier is acquired and before the launch. */
void spw_graph_note(struct spw_graph_uses *uses);

/* In a child after fork: there are no graphs. */
void spw_graph_reset(void);
