/* CUDA graphs: which blocks they name, and where these are when a graph is launched.
 *
 * From the begin of a capture until its graph is made executable or destroyed, every block that
 * lives keeps its place; likewise while there is an executable graph whose nodes cannot be read.
 * Of a graph that was read, graph_uses.h says which blocks keep their places until the last such
 * graph is destroyed. The others may move, and a launch brings them back to the device first, as
 * far as there is room. A block that finds none is used on the host, at the same addresses.
 *
 * What a kernel reaches by addresses that it reads from memory may move, as without a graph: the
 * address stays the same, and no move falls into a launch.
 *
 * Locking: spw_locks.graphs, under which the pools' locks are taken. The driver is asked about
 * nodes without it. */
#pragma once

#include <stdbool.h>

#include "driver/cuda_api.h"

/* The blocks that one executable graph names. */
struct spw_graph_uses;

/* Keeps every block that lives now in its place, until no capture and no graph requires it. */
void spw_track_graph_fix_all(void);

/* Ends that, unless a capture is open, or a graph that was captured is neither executable nor
 * destroyed, or the nodes of one could not be read. */
void spw_track_graph_settle(void);

/* A capture has ended with this graph. To be called before the capture counts as ended. */
void spw_track_graph_captured(CUgraph graph);

/* Forgets a graph before it is destroyed, since the driver may give its handle to another one at
 * once. True when it was captured; spw_track_graph_settle must follow, or, if it was not destroyed,
 * spw_track_graph_captured. */
bool spw_track_graph_forget(CUgraph graph);

/* The driver is about to make an executable graph, or to change one: no block moves meanwhile. */
void spw_track_graph_instantiate_begin(void);

/* It has done so, of `graph`; or it has failed, and `executable` is NULL. `from_device`: kernels
 * can launch it. */
void spw_track_graph_instantiate_end(CUgraphExec executable, CUgraph graph, bool from_device);

/* The program has set parameters of nodes of an executable graph, which are not read: it may name
 * any block. */
void spw_track_graph_changed(CUgraphExec executable);

/* Takes out what is known of an executable graph before it is destroyed, since the driver may give
 * its handle to another one at once. The blocks keep their places. NULL when nothing is known. */
struct spw_graph_uses *spw_track_graph_take(CUgraphExec executable);

/* Ends what was taken out: the graph was destroyed. */
void spw_track_graph_drop(struct spw_graph_uses *uses);

/* Puts it back: the graph was not destroyed. */
void spw_track_graph_put_back(CUgraphExec executable, struct spw_graph_uses *uses);

/* Tells the pools whose memory an executable graph uses that it is about to be launched on this
 * stream (track/users.h): all pools, if its blocks are not known. */
void spw_track_graph_note_users(CUgraphExec executable, CUstream stream, bool per_thread);

/* The program is about to launch an executable graph: brings back what it names, and tells the host
 * tiers of the use. To be called before the submit barrier is acquired. NULL when its blocks are
 * not known; else spw_track_graph_note must follow. */
struct spw_graph_uses *spw_track_graph_expect(CUgraphExec executable, CUstream stream,
                                              bool per_thread);

/* Notes the use in the access logs and in the recording, and lets go of `uses`. To be called
 * between acquiring the submit barrier and the launch. */
void spw_track_graph_note(struct spw_graph_uses *uses);

/* In a child after fork: there are no graphs. */
void spw_track_graph_reset(void);
