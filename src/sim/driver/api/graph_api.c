/* Exported functions on graphs, their nodes and edges. */
#include "sim/driver/graph/graph.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/driver/api/entry.h"
#include "sim/driver/graph/graph_memory.h"
#include "system/create.h"

SIM_API(cuGraphCreate, SIM_INITIALIZED, (CUgraph * phGraph, unsigned int flags))
{
    struct sim_graph *graph;

    if (phGraph == NULL || flags != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    graph = sim_graph_new();
    if (graph == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *phGraph = graph->handle;
    return CUDA_SUCCESS;
}

SIM_API(cuGraphDestroy, SIM_INITIALIZED, (CUgraph hGraph))
{
    struct sim_graph *graph = sim_graph_of(hGraph);

    if (graph == NULL || graph->is_child || graph->is_captured_into) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    sim_graph_unref(graph);
    return CUDA_SUCCESS;
}

SIM_API(cuGraphClone, SIM_INITIALIZED, (CUgraph * phGraphClone, CUgraph originalGraph))
{
    const struct sim_graph *graph = sim_graph_of(originalGraph);
    struct sim_graph *clone;
    CUresult result;

    if (graph == NULL || phGraphClone == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    result = sim_graph_clone(graph, false, &clone);
    if (result == CUDA_SUCCESS) {
        *phGraphClone = clone->handle;
    }
    return result;
}

SIM_API(cuGraphNodeFindInClone, SIM_INITIALIZED,
        (CUgraphNode * phNode, CUgraphNode hOriginalNode, CUgraph hClonedGraph))
{
    const struct sim_graph *clone = sim_graph_of(hClonedGraph);
    const struct sim_node *node = sim_node_of(hOriginalNode);

    if (clone == NULL || node == NULL || phNode == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    for (size_t i = 0; i < clone->count; i++) {
        if (clone->nodes[i]->origin == node->id) {
            *phNode = clone->nodes[i]->handle;
            return CUDA_SUCCESS;
        }
    }
    return CUDA_ERROR_INVALID_VALUE;
}

SIM_API(cuGraphNodeGetType, SIM_INITIALIZED, (CUgraphNode hNode, CUgraphNodeType *type))
{
    const struct sim_node *node = sim_node_of(hNode);

    if (node == NULL || type == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *type = node->op->class->node_type;
    return CUDA_SUCCESS;
}

/* A list that is written to an array of the program. */
struct listing {
    size_t capacity; /* of the array; 0: only count */
    size_t count;
};

/* Completes a list. cuda.h requires the number of entries, and NULL in the unused elements of the
 * array. */
static CUresult end_listing(const struct listing *listing, CUgraphNode *nodes, size_t *ret_count)
{
    size_t filled = listing->count < listing->capacity ? listing->count : listing->capacity;

    if (nodes == NULL) {
        *ret_count = listing->count;
        return CUDA_SUCCESS;
    }
    for (size_t i = filled; i < listing->capacity; i++) {
        nodes[i] = NULL;
    }
    *ret_count = filled;
    return CUDA_SUCCESS;
}

static void list(struct listing *listing, CUgraphNode *nodes, const struct sim_node *node)
{
    if (listing->count < listing->capacity) {
        nodes[listing->count] = node->handle;
    }
    listing->count++;
}

SIM_API(cuGraphGetNodes, SIM_INITIALIZED, (CUgraph hGraph, CUgraphNode *nodes, size_t *numNodes))
{
    const struct sim_graph *graph = sim_graph_of(hGraph);
    struct listing listing = {0};

    if (graph == NULL || numNodes == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    listing.capacity = nodes == NULL ? 0 : *numNodes;
    for (size_t i = 0; i < graph->count; i++) {
        list(&listing, nodes, graph->nodes[i]);
    }
    return end_listing(&listing, nodes, numNodes);
}

SIM_API(cuGraphGetRootNodes, SIM_INITIALIZED,
        (CUgraph hGraph, CUgraphNode *rootNodes, size_t *numRootNodes))
{
    const struct sim_graph *graph = sim_graph_of(hGraph);
    struct listing listing = {0};

    if (graph == NULL || numRootNodes == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    listing.capacity = rootNodes == NULL ? 0 : *numRootNodes;
    for (size_t i = 0; i < graph->count; i++) {
        if (graph->nodes[i]->after_count == 0) {
            list(&listing, rootNodes, graph->nodes[i]);
        }
    }
    return end_listing(&listing, rootNodes, numRootNodes);
}

static CUresult get_edges(CUgraph hGraph, CUgraphNode *from, CUgraphNode *to, CUgraphEdgeData *data,
                          size_t *ret_count)
{
    const struct sim_graph *graph = sim_graph_of(hGraph);
    struct listing sources = {0};
    struct listing targets = {0};

    if (graph == NULL || ret_count == NULL || (from == NULL) != (to == NULL)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    sources.capacity = from == NULL ? 0 : *ret_count;
    targets.capacity = sources.capacity;
    for (size_t i = 0; i < graph->count; i++) {
        const struct sim_node *node = graph->nodes[i];

        for (size_t j = 0; j < node->after_count; j++) {
            list(&sources, from, node->after[j]);
            list(&targets, to, node);
        }
    }
    (void)end_listing(&targets, to, ret_count);
    (void)end_listing(&sources, from, ret_count);
    if (data != NULL) {
        memset(data, 0, *ret_count * sizeof(*data));
    }
    return CUDA_SUCCESS;
}

SIM_API(cuGraphGetEdges, SIM_INITIALIZED,
        (CUgraph hGraph, CUgraphNode *from, CUgraphNode *to, size_t *numEdges))
{
    return get_edges(hGraph, from, to, NULL, numEdges);
}

SIM_API(cuGraphGetEdges_v2, SIM_INITIALIZED,
        (CUgraph hGraph, CUgraphNode *from, CUgraphNode *to, CUgraphEdgeData *edgeData,
         size_t *numEdges))
{
    return get_edges(hGraph, from, to, edgeData, numEdges);
}

enum neighbours { DEPENDENCIES, DEPENDENTS };

static bool depends_on(const struct sim_node *node, const struct sim_node *on)
{
    for (size_t i = 0; i < node->after_count; i++) {
        if (node->after[i] == on) {
            return true;
        }
    }
    return false;
}

/* Lists the dependencies of a node, or the nodes that depend on it. */
static CUresult get_neighbours(CUgraphNode hNode, enum neighbours which, CUgraphNode *nodes,
                               CUgraphEdgeData *data, size_t *ret_count)
{
    const struct sim_node *node = sim_node_of(hNode);
    struct listing listing = {0};

    if (node == NULL || ret_count == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    listing.capacity = nodes == NULL ? 0 : *ret_count;
    for (size_t i = 0; which == DEPENDENCIES && i < node->after_count; i++) {
        list(&listing, nodes, node->after[i]);
    }
    for (size_t i = 0; which == DEPENDENTS && i < node->graph->count; i++) {
        if (depends_on(node->graph->nodes[i], node)) {
            list(&listing, nodes, node->graph->nodes[i]);
        }
    }
    (void)end_listing(&listing, nodes, ret_count);
    if (nodes != NULL && data != NULL) {
        memset(data, 0, *ret_count * sizeof(*data));
    }
    return CUDA_SUCCESS;
}

SIM_API(cuGraphNodeGetDependencies, SIM_INITIALIZED,
        (CUgraphNode hNode, CUgraphNode *dependencies, size_t *numDependencies))
{
    return get_neighbours(hNode, DEPENDENCIES, dependencies, NULL, numDependencies);
}

SIM_API(cuGraphNodeGetDependencies_v2, SIM_INITIALIZED,
        (CUgraphNode hNode, CUgraphNode *dependencies, CUgraphEdgeData *edgeData,
         size_t *numDependencies))
{
    return get_neighbours(hNode, DEPENDENCIES, dependencies, edgeData, numDependencies);
}

SIM_API(cuGraphNodeGetDependentNodes, SIM_INITIALIZED,
        (CUgraphNode hNode, CUgraphNode *dependentNodes, size_t *numDependentNodes))
{
    return get_neighbours(hNode, DEPENDENTS, dependentNodes, NULL, numDependentNodes);
}

SIM_API(cuGraphNodeGetDependentNodes_v2, SIM_INITIALIZED,
        (CUgraphNode hNode, CUgraphNode *dependentNodes, CUgraphEdgeData *edgeData,
         size_t *numDependentNodes))
{
    return get_neighbours(hNode, DEPENDENTS, dependentNodes, edgeData, numDependentNodes);
}

/* Calls `change`, which is sim_node_depend() or sim_node_undepend(), for each pair of nodes. */
static CUresult change_edges(CUgraph hGraph, const CUgraphNode *from, const CUgraphNode *to,
                             size_t count,
                             CUresult (*change)(struct sim_node *node, struct sim_node *on))
{
    const struct sim_graph *graph = sim_graph_of(hGraph);

    if (graph == NULL || (count > 0 && (from == NULL || to == NULL))) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    for (size_t i = 0; i < count; i++) {
        struct sim_node *source = sim_node_of(from[i]);
        struct sim_node *target = sim_node_of(to[i]);
        CUresult result;

        if (source == NULL || target == NULL || source->graph != graph || target->graph != graph) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        result = change(target, source);
        if (result != CUDA_SUCCESS) {
            return result;
        }
    }
    return CUDA_SUCCESS;
}

SIM_API(cuGraphAddDependencies, SIM_INITIALIZED,
        (CUgraph hGraph, const CUgraphNode *from, const CUgraphNode *to, size_t numDependencies))
{
    return change_edges(hGraph, from, to, numDependencies, sim_node_depend);
}

SIM_API(cuGraphAddDependencies_v2, SIM_INITIALIZED,
        (CUgraph hGraph, const CUgraphNode *from, const CUgraphNode *to,
         const CUgraphEdgeData *edgeData, size_t numDependencies))
{
    return change_edges(hGraph, from, to, numDependencies, sim_node_depend);
}

/* cuda.h: edges cannot be removed from a graph with allocation or free nodes. */
static CUresult remove_edges(CUgraph hGraph, const CUgraphNode *from, const CUgraphNode *to,
                             size_t count)
{
    const struct sim_graph *graph = sim_graph_of(hGraph);

    if (graph != NULL && sim_graph_has_memory_nodes(graph)) {
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    return change_edges(hGraph, from, to, count, sim_node_undepend);
}

SIM_API(cuGraphRemoveDependencies, SIM_INITIALIZED,
        (CUgraph hGraph, const CUgraphNode *from, const CUgraphNode *to, size_t numDependencies))
{
    return remove_edges(hGraph, from, to, numDependencies);
}

SIM_API(cuGraphRemoveDependencies_v2, SIM_INITIALIZED,
        (CUgraph hGraph, const CUgraphNode *from, const CUgraphNode *to,
         const CUgraphEdgeData *edgeData, size_t numDependencies))
{
    return remove_edges(hGraph, from, to, numDependencies);
}

SIM_API(cuGraphDestroyNode, SIM_INITIALIZED, (CUgraphNode hNode))
{
    struct sim_node *node = sim_node_of(hNode);

    if (node == NULL || node->graph->is_captured_into) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (sim_graph_has_memory_nodes(node->graph)) {
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    sim_graph_remove(node);
    return CUDA_SUCCESS;
}

SIM_API(cuGraphDebugDotPrint, SIM_INITIALIZED,
        (CUgraph hGraph, const char *path, unsigned int flags))
{
    const struct sim_graph *graph = sim_graph_of(hGraph);
    FILE *file;

    if (graph == NULL || path == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    file = spw_create_stream(path);
    if (file == NULL) {
        return CUDA_ERROR_OPERATING_SYSTEM;
    }
    fprintf(file, "digraph graph_%llu {\n", graph->id);
    for (size_t i = 0; i < graph->count; i++) {
        const struct sim_node *node = graph->nodes[i];

        fprintf(file, "    n%zu [label=\"%s%s%s\"];\n", i, node->op->class->name,
                node->op->label != NULL ? " " : "", node->op->label != NULL ? node->op->label : "");
        for (size_t j = 0; j < node->after_count; j++) {
            fprintf(file, "    n%zu -> n%zu;\n", node->after[j]->place, i);
        }
    }
    fprintf(file, "}\n");
    return fclose(file) == 0 ? CUDA_SUCCESS : CUDA_ERROR_OPERATING_SYSTEM;
}
