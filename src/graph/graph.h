/* Captures, and the blocks that CUDA graphs use. It does not know the handlers of calls.
 *
 *   capture   stream captures that are open
 *   graph     the blocks of each graph, and where they must be at a launch
 *   state     the tables of this folder
 *   uses      reads the blocks that one graph names from its nodes
 *
 * At the beginning of a capture, every live block is fixed in its place. Such blocks stay fixed
 * until the graph of the capture is made executable or destroyed. All blocks are also fixed while
 * there is an executable graph whose nodes cannot be read. If the nodes can be read, the graph
 * fixes only some of the blocks that it names (uses.h), for as long as it exists. The graph's other
 * blocks may move, and a launch first moves them back to the device. If the device has no room for
 * a block, the graph uses it on the host, at the same addresses.
 *
 * A kernel may also find a block through an address in memory. Such a block may move, as it may
 * without a graph: its addresses do not change, and no move happens during a launch.
 *
 * Locking: spw_locks.graphs. The pools' locks are taken under it. It is not held while the driver
 * is asked about nodes. */
#pragma once

#include <stdbool.h>

#include "driver/cuda_api.h"

/* The blocks that one executable graph names. */
struct spw_graph_uses;

/* Fixes every block that is live now, until no capture and no graph requires it. */
void spw_graph_fix_all(void);

/* Ends the effect of spw_graph_fix_all. Does nothing while a capture is open, while a captured
 * graph is neither executable nor destroyed, or while there is a graph whose nodes could not be
 * read. */
void spw_graph_settle(void);

/* Records the graph that a capture made. Must be called before spw_graph_capture_end. */
void spw_graph_captured(CUgraph graph);

/* Removes a graph that is about to be destroyed. Must be called before the destruction, because the
 * driver may give the handle to another graph at once. Returns true if the graph was captured. The
 * caller must then call spw_graph_settle after the destruction, or spw_graph_captured if the
 * destruction failed. */
bool spw_graph_forget(CUgraph graph);

/* Called before the driver makes or changes an executable graph. No block moves until
 * spw_graph_instantiate_end. */
void spw_graph_instantiate_begin(void);

/* Called after the driver has made or changed an executable graph of `graph`. `executable` is NULL
 * after an error. `from_device`: kernels can launch the graph. */
void spw_graph_instantiate_end(CUgraphExec executable, CUgraph graph, bool from_device);

/* Records that the program set parameters of an executable graph's nodes. spillway does not read
 * these parameters, so the graph may name any block from now on. */
void spw_graph_changed(CUgraphExec executable);

/* Removes the uses of an executable graph that is about to be destroyed. Must be called before the
 * destruction, because the driver may give the handle to another graph at once. The blocks stay
 * fixed. Returns NULL if no uses are known. */
struct spw_graph_uses *spw_graph_take(CUgraphExec executable);

/* Ends the uses that spw_graph_take returned, after the graph was destroyed. */
void spw_graph_drop(struct spw_graph_uses *uses);

/* Restores the uses that spw_graph_take returned, if the graph was not destroyed. */
void spw_graph_put_back(CUgraphExec executable, struct spw_graph_uses *uses);

/* Reports to the pools that an executable graph on this stream is about to use their memory
 * (program/users.h). Reports to all pools if the graph's blocks are not known. */
void spw_graph_note_users(CUgraphExec executable, CUstream stream, bool per_thread);

/* Prepares the launch of an executable graph: moves its blocks back to the device, and announces
 * their use to the host tiers. Must be called before the submit barrier is acquired. Returns NULL
 * if the graph's blocks are not known. Otherwise the caller must call spw_graph_note. */
struct spw_graph_uses *spw_graph_expect(CUgraphExec executable, CUstream stream, bool per_thread);

/* Records the uses in the access logs and in the recording, and releases `uses`. Must be called
 * after the submit barrier is acquired and before the launch. */
void spw_graph_note(struct spw_graph_uses *uses);

/* In a child after fork: forgets all graphs. */
void spw_graph_reset(void);
