#include "sim/driver/graph/graph.h"

#include <stdlib.h>
#include <string.h>

#include "common/grow.h"
#include "sim/driver/core/handle_table.h"
#include "sim/driver/exec/schedule.h"
#include "sim/driver/graph/user_object.h"

static unsigned long long last_id;
static unsigned int last_mark;

struct sim_graph *sim_graph_of(CUgraph handle)
{
    return sim_handle_object(SIM_HANDLE_GRAPH, handle);
}

struct sim_node *sim_node_of(CUgraphNode handle)
{
    return sim_handle_object(SIM_HANDLE_NODE, handle);
}

static bool is_among(const struct sim_node *node, struct sim_node *const *nodes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (nodes[i] == node) {
            return true;
        }
    }
    return false;
}

CUresult sim_nodes_of(const CUgraphNode *handles, size_t count, const struct sim_graph *graph,
                      struct sim_node ***ret_nodes)
{
    struct sim_node **nodes;

    if (count > 0 && handles == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    nodes = malloc((count + 1) * sizeof(struct sim_node *));
    if (nodes == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    for (size_t i = 0; i < count; i++) {
        nodes[i] = sim_node_of(handles[i]);
        if (nodes[i] == NULL || nodes[i]->graph != graph || is_among(nodes[i], nodes, i)) {
            free(nodes);
            return CUDA_ERROR_INVALID_VALUE;
        }
    }
    *ret_nodes = nodes;
    return CUDA_SUCCESS;
}

struct sim_graph *sim_graph_new(void)
{
    struct sim_graph *graph = calloc(1, sizeof(*graph));

    if (graph == NULL) {
        return NULL;
    }
    graph->handle = sim_handle_create(SIM_HANDLE_GRAPH, graph);
    if (graph->handle == NULL) {
        free(graph);
        return NULL;
    }
    graph->id = ++last_id;
    graph->refs = 1;
    return graph;
}

struct sim_graph *sim_graph_ref(struct sim_graph *graph)
{
    graph->refs++;
    return graph;
}

static void node_free(struct sim_node *node)
{
    sim_handle_destroy(SIM_HANDLE_NODE, node->handle);
    sim_op_unref(node->op);
    free(node->after);
    free(node);
}

void sim_graph_unref(struct sim_graph *graph)
{
    if (--graph->refs > 0) {
        return;
    }
    for (size_t i = 0; i < graph->count; i++) {
        node_free(graph->nodes[i]);
    }
    for (size_t i = 0; i < graph->object_count; i++) {
        sim_user_object_release(graph->objects[i].object, graph->objects[i].count);
    }
    sim_handle_destroy(SIM_HANDLE_GRAPH, graph->handle);
    free(graph->objects);
    free(graph->nodes);
    free(graph);
}

static struct sim_node *node_new(struct sim_graph *graph, struct sim_op *op,
                                 struct sim_node *const *after, size_t after_count)
{
    struct sim_node *node = calloc(1, sizeof(*node));

    if (node == NULL) {
        return NULL;
    }
    node->after = malloc((after_count + 1) * sizeof(struct sim_node *));
    node->handle = sim_handle_create(SIM_HANDLE_NODE, node);
    if (node->after == NULL || node->handle == NULL) {
        sim_handle_destroy(SIM_HANDLE_NODE, node->handle);
        free(node->after);
        free(node);
        return NULL;
    }
    if (after_count > 0) {
        memcpy(node->after, after, after_count * sizeof(struct sim_node *));
    }
    node->after_count = after_count;
    node->graph = graph;
    node->id = ++last_id;
    node->op = sim_op_ref(op);
    return node;
}

CUresult sim_graph_add(struct sim_graph *graph, struct sim_op *op, struct sim_node *const *after,
                       size_t after_count, struct sim_node **ret_node)
{
    struct sim_node *node;

    if (!SPW_RESIZE(&graph->nodes, graph->count + 1)) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    node = node_new(graph, op, after, after_count);
    if (node == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    node->place = graph->count;
    graph->nodes[graph->count++] = node;
    *ret_node = node;
    return CUDA_SUCCESS;
}

void sim_graph_remove(struct sim_node *node)
{
    struct sim_graph *graph = node->graph;
    size_t kept = 0;

    for (size_t i = 0; i < graph->count; i++) {
        if (graph->nodes[i] != node) {
            (void)sim_node_undepend(graph->nodes[i], node);
            graph->nodes[i]->place = kept;
            graph->nodes[kept++] = graph->nodes[i];
        }
    }
    graph->count = kept;
    node_free(node);
}

CUresult sim_node_depend(struct sim_node *node, struct sim_node *on)
{
    if (node == on || node->graph != on->graph) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    for (size_t i = 0; i < node->after_count; i++) {
        if (node->after[i] == on) {
            return CUDA_ERROR_INVALID_VALUE;
        }
    }
    if (!SPW_RESIZE(&node->after, node->after_count + 1)) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    node->after[node->after_count++] = on;
    return CUDA_SUCCESS;
}

CUresult sim_node_undepend(struct sim_node *node, struct sim_node *on)
{
    for (size_t i = 0; i < node->after_count; i++) {
        if (node->after[i] == on) {
            node->after_count--;
            memmove(&node->after[i], &node->after[i + 1],
                    (node->after_count - i) * sizeof(struct sim_node *));
            return CUDA_SUCCESS;
        }
    }
    return CUDA_ERROR_INVALID_VALUE;
}

void sim_node_set_op(struct sim_node *node, struct sim_op *op)
{
    sim_op_ref(op);
    sim_op_unref(node->op);
    node->op = op;
}

/* Marks a node and all nodes that it depends on, directly or not. `stack` has room for all nodes of
 * the graph. */
static void mark_ancestors(struct sim_node *node, unsigned int mark, struct sim_node **stack)
{
    size_t depth = 0;

    if (node->mark == mark) {
        return;
    }
    node->mark = mark;
    stack[depth++] = node;
    while (depth > 0) {
        const struct sim_node *top = stack[--depth];

        for (size_t i = 0; i < top->after_count; i++) {
            if (top->after[i]->mark != mark) {
                top->after[i]->mark = mark;
                stack[depth++] = top->after[i];
            }
        }
    }
}

bool sim_graph_reaches(struct sim_node *const *from, size_t from_count,
                       struct sim_node *const *nodes, size_t count)
{
    unsigned int mark = ++last_mark;
    struct sim_node **stack;
    bool all = true;

    if (count == 0) {
        return true;
    }
    if (from_count == 0) {
        return false;
    }
    stack = malloc((from[0]->graph->count + 1) * sizeof(struct sim_node *));
    if (stack == NULL) {
        return false;
    }
    for (size_t i = 0; i < from_count; i++) {
        mark_ancestors(from[i], mark, stack);
    }
    free(stack);
    for (size_t i = 0; i < count; i++) {
        all = all && nodes[i]->mark == mark;
    }
    return all;
}

static bool is_ready(const struct sim_node *node, unsigned int mark)
{
    if (node->mark == mark) {
        return false;
    }
    for (size_t i = 0; i < node->after_count; i++) {
        if (node->after[i]->mark != mark) {
            return false;
        }
    }
    return true;
}

CUresult sim_graph_order(const struct sim_graph *graph, struct sim_node ***ret_nodes)
{
    struct sim_node **order = malloc((graph->count + 1) * sizeof(struct sim_node *));
    unsigned int mark = ++last_mark;
    size_t done = 0;
    bool progress = true;

    if (order == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    /* Nodes nearly always depend only on earlier nodes, so one round suffices. */
    while (done < graph->count && progress) {
        progress = false;
        for (size_t i = 0; i < graph->count; i++) {
            struct sim_node *node = graph->nodes[i];

            if (is_ready(node, mark)) {
                node->mark = mark;
                order[done++] = node;
                progress = true;
            }
        }
    }
    if (done < graph->count) {
        free(order);
        return CUDA_ERROR_INVALID_VALUE;
    }
    *ret_nodes = order;
    return CUDA_SUCCESS;
}

CUresult sim_graph_launch_nodes(const struct sim_graph *graph, struct sim_stream *stream)
{
    struct sim_node **order;
    CUresult result = sim_graph_order(graph, &order);

    if (result != CUDA_SUCCESS) {
        return result;
    }
    for (size_t i = 0; i < graph->count && result == CUDA_SUCCESS; i++) {
        struct sim_op *op = order[i]->op;

        if (order[i]->disabled) {
            continue;
        }
        result = op->class->launch != NULL ? op->class->launch(op, stream)
                                           : sim_schedule_submit(stream, op, NULL);
    }
    free(order);
    return result;
}

size_t sim_graph_node_count(const struct sim_graph *graph)
{
    size_t count = graph->count;

    for (size_t i = 0; i < graph->count; i++) {
        if (sim_op_is_child(graph->nodes[i]->op)) {
            count += sim_graph_node_count(sim_child_op_graph(graph->nodes[i]->op));
        }
    }
    return count;
}

/* The operation for the node of a clone: the same operation, except that child graphs are copied.
 */
static CUresult clone_op(struct sim_op *op, bool with_memory, struct sim_op **ret_op)
{
    struct sim_graph *child;
    CUresult result;

    if (sim_op_is_graph_memory(op) && !with_memory) {
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    if (!sim_op_is_child(op)) {
        *ret_op = sim_op_ref(op);
        return CUDA_SUCCESS;
    }
    result = sim_graph_clone(sim_child_op_graph(op), with_memory, &child);
    if (result != CUDA_SUCCESS) {
        return result;
    }
    *ret_op = sim_child_op_new(child);
    sim_graph_unref(child);
    return *ret_op == NULL ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

static CUresult clone_node(struct sim_graph *clone, const struct sim_node *node, bool with_memory)
{
    struct sim_node *copy;
    struct sim_op *op;
    CUresult result = clone_op(node->op, with_memory, &op);

    if (result != CUDA_SUCCESS) {
        return result;
    }
    result = sim_graph_add(clone, op, NULL, 0, &copy);
    sim_op_unref(op);
    if (result == CUDA_SUCCESS) {
        copy->origin = node->id;
    }
    return result;
}

static CUresult clone_edges(struct sim_graph *clone, const struct sim_graph *graph)
{
    for (size_t i = 0; i < graph->count; i++) {
        const struct sim_node *node = graph->nodes[i];

        for (size_t j = 0; j < node->after_count; j++) {
            struct sim_node *on = clone->nodes[node->after[j]->place];
            CUresult result = sim_node_depend(clone->nodes[i], on);

            if (result != CUDA_SUCCESS) {
                return result;
            }
        }
    }
    return CUDA_SUCCESS;
}

CUresult sim_graph_clone(const struct sim_graph *graph, bool with_memory,
                         struct sim_graph **ret_graph)
{
    struct sim_graph *clone = sim_graph_new();
    CUresult result = clone == NULL ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;

    for (size_t i = 0; i < graph->count && result == CUDA_SUCCESS; i++) {
        result = clone_node(clone, graph->nodes[i], with_memory);
    }
    if (result == CUDA_SUCCESS) {
        result = clone_edges(clone, graph);
    }
    for (size_t i = 0; i < graph->object_count && result == CUDA_SUCCESS; i++) {
        result = sim_graph_own_object(clone, graph->objects[i].object, graph->objects[i].count);
    }
    if (result != CUDA_SUCCESS) {
        if (clone != NULL) {
            sim_graph_unref(clone);
        }
        return result;
    }
    *ret_graph = clone;
    return CUDA_SUCCESS;
}

struct child_op {
    struct sim_op op;
    struct sim_graph *graph;
};

static CUresult child_launch(struct sim_op *op, struct sim_stream *stream)
{
    return sim_graph_launch_nodes(((struct child_op *)op)->graph, stream);
}

static void child_fini(struct sim_op *op)
{
    sim_graph_unref(((struct child_op *)op)->graph);
}

static const struct sim_op_class child_class = {
    .name = "graph",
    .node_type = CU_GRAPH_NODE_TYPE_GRAPH,
    .launch = child_launch,
    .fini = child_fini,
};

struct sim_op *sim_child_op_new(struct sim_graph *graph)
{
    struct child_op *child = sim_op_new(&child_class, sizeof(*child), 0);

    if (child == NULL) {
        return NULL;
    }
    graph->is_child = true;
    child->graph = sim_graph_ref(graph);
    return &child->op;
}

struct sim_graph *sim_child_op_graph(const struct sim_op *op)
{
    return ((const struct child_op *)op)->graph;
}

bool sim_op_is_child(const struct sim_op *op)
{
    return op->class == &child_class;
}

bool sim_op_is_graph_memory(const struct sim_op *op)
{
    return op->class->node_type == CU_GRAPH_NODE_TYPE_MEM_ALLOC ||
           op->class->node_type == CU_GRAPH_NODE_TYPE_MEM_FREE;
}

CUresult sim_graph_adopt_object(struct sim_graph *graph, struct sim_user_object *object,
                                unsigned int count)
{
    for (size_t i = 0; i < graph->object_count; i++) {
        if (graph->objects[i].object == object) {
            graph->objects[i].count += count;
            return CUDA_SUCCESS;
        }
    }
    if (!SPW_RESIZE(&graph->objects, graph->object_count + 1)) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    graph->objects[graph->object_count++] = (struct sim_object_ref){object, count};
    return CUDA_SUCCESS;
}

CUresult sim_graph_own_object(struct sim_graph *graph, struct sim_user_object *object,
                              unsigned int count)
{
    CUresult result = sim_graph_adopt_object(graph, object, count);

    if (result == CUDA_SUCCESS) {
        object->refs += count;
    }
    return result;
}
