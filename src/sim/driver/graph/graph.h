/* CUDA graphs and stream capture. It does not know the exported functions.
 *
 *   graph            nodes and edges
 *   graph_memory     memory that graphs own
 *   stream_capture   turns work of a stream into nodes
 *   submit           queues work or captures it
 *   user_object      user objects, whose destructors the program supplies
 *
 * Locking: the simulator's lock (core/lock.h) is held. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include <cuda.h>

#include "sim/driver/exec/op.h"

struct sim_graph;
struct sim_user_object;

struct sim_node {
    CUgraphNode handle;
    struct sim_graph *graph;
    size_t place;              /* index in the graph's array of nodes */
    unsigned long long id;     /* never used twice */
    unsigned long long origin; /* for a node of a clone: the id of the original node */
    struct sim_op *op;         /* a reference */
    struct sim_node **after;   /* nodes that this node depends on */
    size_t after_count;
    bool disabled;     /* cuGraphNodeSetEnabled, in executable graphs */
    unsigned int mark; /* used by searches */
};

/* A graph's references to one user object. */
struct sim_object_ref {
    struct sim_user_object *object;
    unsigned int count;
};

struct sim_graph {
    CUgraph handle;
    unsigned long long id; /* never used twice */
    unsigned int refs;
    struct sim_node **nodes; /* in order of creation */
    size_t count;
    struct sim_object_ref *objects;
    size_t object_count;
    bool is_child;         /* belongs to a node; cannot be destroyed by its handle */
    bool is_captured_into; /* an open capture adds nodes */
};

/* Creates an empty graph with a handle and one reference. NULL if host memory is exhausted. */
struct sim_graph *sim_graph_new(void);
struct sim_graph *sim_graph_ref(struct sim_graph *graph);
void sim_graph_unref(struct sim_graph *graph);

/* Copies the graph and its child graphs. The copy has a new handle. Its nodes have the same order
 * as the original nodes, and each node's origin is the id of the original node. `with_memory`: true
 * for executable graphs; allocation and free nodes are then copied as well, and share the memory of
 * the original nodes. If it is false, such a node fails with CUDA_ERROR_NOT_SUPPORTED.
 * CUDA_ERROR_OUT_OF_MEMORY. */
CUresult sim_graph_clone(const struct sim_graph *graph, bool with_memory,
                         struct sim_graph **ret_graph);

/* Adds a node that depends on the nodes `after` of the same graph. The node takes its own reference
 * to the operation. CUDA_ERROR_OUT_OF_MEMORY. */
CUresult sim_graph_add(struct sim_graph *graph, struct sim_op *op, struct sim_node *const *after,
                       size_t after_count, struct sim_node **ret_node);

/* Removes the node, with its edges, from its graph and frees it. */
void sim_graph_remove(struct sim_node *node);

/* Add or remove one edge. CUDA_ERROR_INVALID_VALUE if a new edge exists already, leads from a node
 * to itself or joins two graphs, or if there is no edge to remove. CUDA_ERROR_OUT_OF_MEMORY. */
CUresult sim_node_depend(struct sim_node *node, struct sim_node *on);
CUresult sim_node_undepend(struct sim_node *node, struct sim_node *on);

/* Replaces the operation of the node with another operation of the same kind. */
void sim_node_set_op(struct sim_node *node, struct sim_op *op);

/* True if each node in `nodes` is also in `from`, or is a direct or indirect dependency of a node
 * in `from`. */
bool sim_graph_reaches(struct sim_node *const *from, size_t from_count,
                       struct sim_node *const *nodes, size_t count);

/* The nodes in topological order: each node follows its dependencies. The caller frees the array.
 * CUDA_ERROR_INVALID_VALUE if there is a cycle, CUDA_ERROR_OUT_OF_MEMORY. */
CUresult sim_graph_order(const struct sim_graph *graph, struct sim_node ***ret_nodes);

/* Submits the operations of all nodes to the stream, in order. The stream must not be capturing. */
CUresult sim_graph_launch_nodes(const struct sim_graph *graph, struct sim_stream *stream);

/* Number of nodes, including the nodes of child graphs. */
size_t sim_graph_node_count(const struct sim_graph *graph);

/* The object of a handle; NULL if the handle is not valid. */
struct sim_graph *sim_graph_of(CUgraph handle);
struct sim_node *sim_node_of(CUgraphNode handle);

/* The nodes of an array of handles. The caller frees the result. CUDA_ERROR_INVALID_VALUE unless
 * the handles are distinct nodes of `graph`. CUDA_ERROR_OUT_OF_MEMORY. */
CUresult sim_nodes_of(const CUgraphNode *handles, size_t count, const struct sim_graph *graph,
                      struct sim_node ***ret_nodes);

/* sim_child_op_new(): creates an operation that launches the nodes of a child graph, and that takes
 * its own reference to the graph. NULL if host memory is exhausted. sim_child_op_graph(): the graph
 * of such an operation. sim_op_is_child(): true for such an operation. */
struct sim_op *sim_child_op_new(struct sim_graph *graph);
struct sim_graph *sim_child_op_graph(const struct sim_op *op);
bool sim_op_is_child(const struct sim_op *op);

/* Gives the graph its own references to a user object; the graph drops them when it is destroyed.
 * CUDA_ERROR_OUT_OF_MEMORY. */
CUresult sim_graph_own_object(struct sim_graph *graph, struct sim_user_object *object,
                              unsigned int count);

/* As sim_graph_own_object(), but the graph takes over `count` references of the caller. */
CUresult sim_graph_adopt_object(struct sim_graph *graph, struct sim_user_object *object,
                                unsigned int count);

/* True if the operation belongs to an allocation node or a free node (graph_memory.h). */
bool sim_op_is_graph_memory(const struct sim_op *op);
