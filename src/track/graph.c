#include "track/graph.h"

#include "common/lock.h"
#include "common/log.h"
#include "pool/pool.h"
#include "track/arguments.h"
#include "track/device.h"
#include "track/lookup.h"
#include "track/stream.h"

#include <stdlib.h>

enum { DEEPEST = 16 }; /* graphs within graphs that are read */

/* The blocks by the addresses at which they begin: in order, each once. `known` is false when the
 * graph may name others. */
struct spw_graph_uses {
    int ordinal; /* of the current device, for the counts of our driver calls; -1: none */
    bool known;
    size_t count, capacity;
    uint64_t *blocks;
};

/* How many executable graphs name a block: a value of spw_process.graphs.named. */
struct graph_count {
    uint32_t graphs;
};

/* ---- reading a graph ---- */

static void add_block(struct spw_graph_uses *uses, uint64_t address)
{
    struct spw_block block;
    struct spw_pool *pool;

    if (spw_track_device_owner(address, &pool) == NULL || !spw_pool_find(pool, address, &block)) {
        return;
    }
    if (uses->count == uses->capacity) {
        size_t capacity = uses->capacity == 0 ? 64 : 2 * uses->capacity;
        uint64_t *blocks = realloc(uses->blocks, capacity * sizeof(*blocks));

        if (blocks == NULL) {
            uses->known = false;
            return;
        }
        uses->blocks = blocks;
        uses->capacity = capacity;
    }
    uses->blocks[uses->count++] = block.address;
}

static int compare(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;

    return (left > right) - (left < right);
}

static void sort(struct spw_graph_uses *uses)
{
    size_t kept = 0;

    if (uses->count == 0) {
        return;
    }
    qsort(uses->blocks, uses->count, sizeof(*uses->blocks), compare);
    for (size_t i = 1; i < uses->count; i++) {
        if (uses->blocks[i] != uses->blocks[kept]) {
            uses->blocks[++kept] = uses->blocks[i];
        }
    }
    uses->count = kept + 1;
}

static bool read_kernel(struct spw_driver *driver, CUgraphNode node, struct spw_graph_uses *uses)
{
    CUDA_KERNEL_NODE_PARAMS params = {0};
    struct spw_arguments named;
    CUfunction function;

    if (driver->cuGraphKernelNodeGetParams_v2 == NULL ||
        SPW_DRIVER_CALL(driver, uses->ordinal, cuGraphKernelNodeGetParams_v2, node, &params) !=
            CUDA_SUCCESS) {
        return false;
    }
    function = params.func != NULL ? params.func : (CUfunction)params.kern;
    if (!spw_track_arguments_read(&named, function, params.kernelParams, params.extra)) {
        return false;
    }
    for (size_t i = 0; i < named.count; i++) {
        add_block(uses, named.addresses[i]);
    }
    return true;
}

static bool read_copy(struct spw_driver *driver, CUgraphNode node, struct spw_graph_uses *uses)
{
    CUDA_MEMCPY3D copy;

    if (driver->cuGraphMemcpyNodeGetParams == NULL ||
        SPW_DRIVER_CALL(driver, uses->ordinal, cuGraphMemcpyNodeGetParams, node, &copy) !=
            CUDA_SUCCESS) {
        return false;
    }
    if (copy.srcMemoryType == CU_MEMORYTYPE_DEVICE || copy.srcMemoryType == CU_MEMORYTYPE_UNIFIED) {
        add_block(uses, copy.srcDevice);
    }
    if (copy.dstMemoryType == CU_MEMORYTYPE_DEVICE || copy.dstMemoryType == CU_MEMORYTYPE_UNIFIED) {
        add_block(uses, copy.dstDevice);
    }
    return true;
}

static bool read_fill(struct spw_driver *driver, CUgraphNode node, struct spw_graph_uses *uses)
{
    CUDA_MEMSET_NODE_PARAMS fill;

    if (driver->cuGraphMemsetNodeGetParams == NULL ||
        SPW_DRIVER_CALL(driver, uses->ordinal, cuGraphMemsetNodeGetParams, node, &fill) !=
            CUDA_SUCCESS) {
        return false;
    }
    add_block(uses, fill.dst);
    return true;
}

static bool read_graph(struct spw_driver *driver, CUgraph graph, int depth,
                       struct spw_graph_uses *uses);

static bool read_child(struct spw_driver *driver, CUgraphNode node, int depth,
                       struct spw_graph_uses *uses)
{
    CUgraph child;

    return driver->cuGraphChildGraphNodeGetGraph != NULL &&
           SPW_DRIVER_CALL(driver, uses->ordinal, cuGraphChildGraphNodeGetGraph, node, &child) ==
               CUDA_SUCCESS &&
           read_graph(driver, child, depth + 1, uses);
}

/* Enters the blocks that a node names. False when it cannot be read. */
static bool read_node(struct spw_driver *driver, CUgraphNode node, int depth,
                      struct spw_graph_uses *uses)
{
    CUgraphNodeType type;

    if (driver->cuGraphNodeGetType == NULL ||
        SPW_DRIVER_CALL(driver, uses->ordinal, cuGraphNodeGetType, node, &type) != CUDA_SUCCESS) {
        return false;
    }
    switch (type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
        return read_kernel(driver, node, uses);
    case CU_GRAPH_NODE_TYPE_MEMCPY:
        return read_copy(driver, node, uses);
    case CU_GRAPH_NODE_TYPE_MEMSET:
        return read_fill(driver, node, uses);
    case CU_GRAPH_NODE_TYPE_GRAPH:
        return read_child(driver, node, depth, uses);
    case CU_GRAPH_NODE_TYPE_HOST:
    case CU_GRAPH_NODE_TYPE_EMPTY:
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
    case CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL:
    case CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT:
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
        return true;
    default:
        return false;
    }
}

static bool read_graph(struct spw_driver *driver, CUgraph graph, int depth,
                       struct spw_graph_uses *uses)
{
    CUgraphNode *nodes;
    size_t count = 0;
    bool known;

    if (depth > DEEPEST || driver->cuGraphGetNodes == NULL ||
        SPW_DRIVER_CALL(driver, uses->ordinal, cuGraphGetNodes, graph, NULL, &count) !=
            CUDA_SUCCESS) {
        return false;
    }
    if (count == 0) {
        return true;
    }
    nodes = malloc(count * sizeof(*nodes));
    known = nodes != NULL && SPW_DRIVER_CALL(driver, uses->ordinal, cuGraphGetNodes, graph, nodes,
                                             &count) == CUDA_SUCCESS;
    for (size_t i = 0; known && i < count; i++) {
        known = read_node(driver, nodes[i], depth, uses);
    }
    free(nodes);
    return known;
}

/* NULL without memory. */
static struct spw_graph_uses *read_uses(CUgraph graph)
{
    const struct spw_stream_info *current = spw_track_stream_current();
    struct spw_graph_uses *uses = calloc(1, sizeof(*uses));

    if (uses == NULL) {
        return NULL;
    }
    uses->ordinal = current != NULL ? current->ordinal : -1;
    uses->known = true;
    if (!read_graph(spw_track_driver(), graph, /* depth */ 0, uses)) {
        uses->known = false;
    }
    sort(uses);
    return uses;
}

/* ---- the places of blocks; the lock is held ---- */

static void fix_all(void)
{
    for (int i = 0; i < spw_process.device_count; i++) {
        struct spw_pool *pool = spw_track_device_opened(&spw_process.devices[i]);

        if (pool != NULL) {
            spw_pool_fix_all(pool);
        }
    }
}

static void settle(void)
{
    const struct spw_graphs *graphs = &spw_process.graphs;

    if (graphs->captured.count > 0 || graphs->unreadable > 0 ||
        atomic_load(&spw_track_driver()->captures_open) > 0) {
        return;
    }
    for (int i = 0; i < spw_process.device_count; i++) {
        struct spw_pool *pool = spw_track_device_opened(&spw_process.devices[i]);

        if (pool != NULL) {
            spw_pool_release_all(pool);
        }
    }
}

static void set_fixed(uint64_t address, bool fixed)
{
    const struct spw_block_attributes attributes = {
        .fix = fixed ? SPW_FIXED_BY_GRAPH : 0,
        .unfix = fixed ? 0 : SPW_FIXED_BY_GRAPH,
    };
    struct spw_pool *pool;

    if (spw_track_device_owner(address, &pool) != NULL) {
        (void)spw_pool_set_attributes(pool, address, 1, &attributes);
    }
}

/* False without memory. */
static bool fix_block(uint64_t address)
{
    struct spw_map *named = &spw_process.graphs.named;
    struct graph_count *count = spw_map_get(named, address);

    if (count == NULL) {
        count = calloc(1, sizeof(*count));
        if (count == NULL || !spw_map_put(named, address, count)) {
            free(count);
            return false;
        }
    }
    count->graphs++;
    /* Also when another graph named a block there: that one may be gone. */
    set_fixed(address, /* fixed */ true);
    return true;
}

static void release_block(uint64_t address)
{
    struct spw_map *named = &spw_process.graphs.named;
    struct graph_count *count = spw_map_get(named, address);

    if (count != NULL && --count->graphs == 0) {
        free(spw_map_take(named, address));
        set_fixed(address, /* fixed */ false);
    }
}

/* Ends the uses of one executable graph, and frees them. */
static void release(struct spw_graph_uses *uses)
{
    for (size_t i = 0; i < uses->count; i++) {
        release_block(uses->blocks[i]);
    }
    spw_process.graphs.unreadable -= !uses->known;
    free(uses->blocks);
    free(uses);
}

static void tell_unreadable(void)
{
    static atomic_flag told = ATOMIC_FLAG_INIT;

    if (!atomic_flag_test_and_set(&told)) {
        spw_log(SPW_LOG_INFO, "nodes of a CUDA graph cannot be read: memory that lives now stays "
                              "where it is until the graph is destroyed");
    }
}

/* Fixes the blocks; those that cannot be entered are cut off, and then all that live are fixed. */
static void fix(struct spw_graph_uses *uses)
{
    for (size_t i = 0; i < uses->count; i++) {
        if (!fix_block(uses->blocks[i])) {
            uses->count = i;
            uses->known = false;
        }
    }
    if (!uses->known) {
        spw_process.graphs.unreadable++;
        fix_all();
        tell_unreadable();
    }
}

/* Nothing more can be remembered: all that lives stays in its place for good. */
static void give_up(void)
{
    spw_process.graphs.unreadable++;
    fix_all();
}

/* ---- events ---- */

void spw_track_graph_fix_all(void)
{
    spw_lock(&spw_locks.graphs);
    fix_all();
    spw_unlock(&spw_locks.graphs);
}

void spw_track_graph_settle(void)
{
    spw_lock(&spw_locks.graphs);
    settle();
    spw_unlock(&spw_locks.graphs);
}

void spw_track_graph_captured(CUgraph graph)
{
    struct spw_map *captured = &spw_process.graphs.captured;
    char *mark = malloc(1);

    spw_lock(&spw_locks.graphs);
    fix_all();
    if (spw_map_get(captured, (uintptr_t)graph) == NULL) {
        if (mark != NULL && spw_map_put(captured, (uintptr_t)graph, mark)) {
            mark = NULL;
        } else {
            give_up();
        }
    }
    spw_unlock(&spw_locks.graphs);
    free(mark);
}

bool spw_track_graph_forget(CUgraph graph)
{
    void *mark;

    spw_lock(&spw_locks.graphs);
    mark = spw_map_take(&spw_process.graphs.captured, (uintptr_t)graph);
    spw_unlock(&spw_locks.graphs);
    free(mark);
    return mark != NULL;
}

/* Enters what an executable graph uses in place of what it used before. The lock is held. */
static void enter(CUgraphExec executable, struct spw_graph_uses *uses)
{
    struct spw_map *executables = &spw_process.graphs.executables;
    struct spw_graph_uses *before = spw_map_get(executables, (uintptr_t)executable);

    if (uses == NULL) {
        give_up();
        return;
    }
    fix(uses);
    if (!spw_map_put(executables, (uintptr_t)executable, uses)) {
        give_up();
        release(uses);
    } else if (before != NULL) {
        release(before);
    }
}

void spw_track_graph_instantiate_begin(void)
{
    spw_lock(&spw_locks.graphs);
    spw_process.graphs.unreadable++;
    fix_all();
    spw_unlock(&spw_locks.graphs);
}

void spw_track_graph_instantiate_end(CUgraphExec executable, CUgraph graph)
{
    struct spw_graph_uses *uses = executable != NULL ? read_uses(graph) : NULL;

    spw_lock(&spw_locks.graphs);
    spw_process.graphs.unreadable--;
    if (executable != NULL) {
        enter(executable, uses);
        free(spw_map_take(&spw_process.graphs.captured, (uintptr_t)graph));
    }
    settle();
    spw_unlock(&spw_locks.graphs);
}

void spw_track_graph_changed(CUgraphExec executable)
{
    struct spw_graph_uses *uses;

    spw_lock(&spw_locks.graphs);
    uses = spw_map_get(&spw_process.graphs.executables, (uintptr_t)executable);
    if (uses == NULL || uses->known) {
        spw_process.graphs.unreadable++;
        tell_unreadable();
    }
    if (uses != NULL) {
        uses->known = false;
    }
    fix_all();
    spw_unlock(&spw_locks.graphs);
}

struct spw_graph_uses *spw_track_graph_take(CUgraphExec executable)
{
    struct spw_graph_uses *uses;

    spw_lock(&spw_locks.graphs);
    uses = spw_map_take(&spw_process.graphs.executables, (uintptr_t)executable);
    spw_unlock(&spw_locks.graphs);
    return uses;
}

void spw_track_graph_drop(struct spw_graph_uses *uses)
{
    if (uses == NULL) {
        return;
    }
    spw_lock(&spw_locks.graphs);
    release(uses);
    settle();
    spw_unlock(&spw_locks.graphs);
}

void spw_track_graph_put_back(CUgraphExec executable, struct spw_graph_uses *uses)
{
    if (uses == NULL) {
        return;
    }
    spw_lock(&spw_locks.graphs);
    if (!spw_map_put(&spw_process.graphs.executables, (uintptr_t)executable, uses)) {
        give_up();
        release(uses);
    }
    spw_unlock(&spw_locks.graphs);
}

static void free_uses(struct spw_map *map)
{
    struct spw_graph_uses *uses;
    size_t cursor = 0;

    while ((uses = spw_map_next(map, &cursor)) != NULL) {
        free(uses->blocks);
    }
    spw_map_clear(map);
}

void spw_track_graph_reset(void)
{
    spw_lock(&spw_locks.graphs);
    free_uses(&spw_process.graphs.executables);
    spw_map_clear(&spw_process.graphs.captured);
    spw_map_clear(&spw_process.graphs.named);
    spw_process.graphs.unreadable = 0;
    spw_unlock(&spw_locks.graphs);
}
