#include "graph/uses.h"

#include "common/grow.h"
#include "device/lookup.h"
#include "pool/pool.h"
#include "program/stream.h"
#include "submit/arguments.h"
#include "system/room.h"

#include <stdlib.h>

enum { DEEPEST = 16 }; /* most levels of graphs within graphs that are read */

/* ---- lists of blocks ---- */

static bool append(struct spw_graph_blocks *blocks, uint64_t address)
{
    if (!SPW_GROW(&blocks->addresses, &blocks->capacity, blocks->count + 1)) {
        return false;
    }
    blocks->addresses[blocks->count++] = address;
    return true;
}

/* Adds the block at `address`, if it is ours; `kept`: the block keeps its place. */
static void add_block(struct spw_graph_uses *uses, uint64_t address, bool kept)
{
    struct spw_block block;
    struct spw_pool *pool;

    if (spw_device_owner(address, &pool) == NULL || !spw_pool_find(pool, address, &block)) {
        return;
    }
    if (!append(&uses->named, block.address) || (kept && !append(&uses->kept, block.address))) {
        uses->known = false;
    }
}

static int compare(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;

    return (left > right) - (left < right);
}

static void sort(struct spw_graph_blocks *blocks)
{
    uint64_t *addresses = blocks->addresses;
    size_t last = 0;

    if (blocks->count == 0) {
        return;
    }
    qsort(addresses, blocks->count, sizeof(*addresses), compare);
    for (size_t i = 1; i < blocks->count; i++) {
        if (addresses[i] != addresses[last]) {
            addresses[++last] = addresses[i];
        }
    }
    blocks->count = last + 1;
}

/* ---- reading nodes ---- */

static bool read_kernel(struct spw_driver *driver, CUgraphNode node, struct spw_graph_uses *uses)
{
    CUDA_KERNEL_NODE_PARAMS params = {0};
    struct spw_arguments SPW_ROOM *named = spw_room_take(sizeof(*named));
    CUfunction function;

    if (named == NULL || driver->cuGraphKernelNodeGetParams_v2 == NULL ||
        SPW_DRIVER_CALL(driver, uses->ordinal, cuGraphKernelNodeGetParams_v2, node, &params) !=
            CUDA_SUCCESS) {
        return false;
    }
    function = params.func != NULL ? params.func : (CUfunction)params.kern;
    if (!spw_submit_arguments_read(named, function, params.kernelParams, params.extra)) {
        return false;
    }
    for (size_t i = 0; i < named->count; i++) {
        add_block(uses, named->addresses[i], /* kept */ false);
    }
    uses->direct = uses->direct && named->known;
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
        add_block(uses, copy.srcDevice, /* kept */ true);
    }
    if (copy.dstMemoryType == CU_MEMORYTYPE_DEVICE || copy.dstMemoryType == CU_MEMORYTYPE_UNIFIED) {
        add_block(uses, copy.dstDevice, /* kept */ true);
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
    add_block(uses, fill.dst, /* kept */ true);
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

/* Enters the blocks that a node names. False when the node cannot be read. */
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

/* ---- a whole graph ---- */

static void keep_all(struct spw_graph_uses *uses)
{
    uses->kept.count = 0;
    for (size_t i = 0; i < uses->named.count; i++) {
        uses->known = append(&uses->kept, uses->named.addresses[i]) && uses->known;
    }
}

struct spw_graph_uses *spw_graph_uses_read(CUgraph graph, bool from_device)
{
    const struct spw_stream_info *current = spw_program_stream_current();
    struct spw_graph_uses *uses = calloc(1, sizeof(*uses));

    if (uses == NULL) {
        return NULL;
    }
    uses->ordinal = current != NULL ? current->ordinal : -1;
    uses->known = uses->direct = true;
    uses->from_device = from_device;
    uses->references = 1;
    if (!read_graph(spw_process_driver(), graph, /* depth */ 0, uses)) {
        uses->known = false;
    }
    sort(&uses->named);
    if (!uses->direct || uses->from_device || spw_process_settings()->graphs_stay) {
        keep_all(uses);
    }
    sort(&uses->kept);
    return uses;
}

void spw_graph_uses_free(struct spw_graph_uses *uses)
{
    if (uses != NULL) {
        free(uses->named.addresses);
        free(uses->kept.addresses);
        free(uses);
    }
}
