/* Captures and graphs that are launched again. */
#include <string.h>

#include "chaos.h"
#include "errors.h"

enum { CHANGES = sizeof(((struct loop *)NULL)->changes) / sizeof(struct change) };

/* A change by way of memory that the graph allocates and frees itself. */
static bool submit_through_graph_memory(const struct block *block, const struct change *change,
                                        CUstream stream)
{
    size_t bytes = (change->end - change->begin) * sizeof(uint32_t);
    CUdeviceptr memory = 0;

    return ok(cuMemAllocAsync(&memory, bytes, stream), "cuMemAllocAsync in a capture") &&
           ok(cuMemsetD32Async(memory, change->value, bytes / sizeof(uint32_t), stream),
              "cuMemsetD32Async in a capture") &&
           ok(cuMemcpyDtoDAsync(block->address + change->begin * sizeof(uint32_t), memory, bytes,
                                stream),
              "cuMemcpyDtoDAsync in a capture") &&
           ok(cuMemFreeAsync(memory, stream), "cuMemFreeAsync in a capture");
}

/* Captures the changes that it draws. */
static bool capture(struct worker *worker, struct loop *loop, CUstream stream, CUgraph *ret_graph)
{
    static const CUstreamCaptureMode modes[] = {CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
                                                CU_STREAM_CAPTURE_MODE_RELAXED,
                                                CU_STREAM_CAPTURE_MODE_GLOBAL};
    CUstreamCaptureMode mode = modes[draw(worker, worker->alone ? 3 : 2)];
    bool captured = true;
    CUresult result;

    if (!ok(cuStreamBeginCapture(stream, mode), "cuStreamBeginCapture")) {
        return false;
    }
    for (loop->count = 0; loop->count < CHANGES && captured && !once_in(worker, 4); loop->count++) {
        struct change *change = &loop->changes[loop->count];

        *change = block_draw_change(worker, &loop->block);
        captured = !change->adds && once_in(worker, 3)
                       ? submit_through_graph_memory(&loop->block, change, stream)
                       : block_submit(worker, &loop->block, change, stream);
    }
    *ret_graph = NULL;
    result = cuStreamEndCapture(stream, ret_graph);
    if (result != CUDA_SUCCESS && options.faults) {
        /* A second time, if the fault was in the first. The capture may be broken by then. */
        (void)cuStreamEndCapture(stream, ret_graph);
        return false;
    }
    if (!captured) {
        return false; /* Whatever the end answers. */
    }
    return ok(result, "cuStreamEndCapture");
}

void act_capture(struct worker *worker)
{
    struct block *block = &worker->blocks[draw(worker, BLOCKS)];
    CUstream stream = NULL;
    struct loop loop = {0};
    CUgraph graph = NULL;

    if (worker->loop.graph != NULL || block->address == 0 || block->lost || !block->content.known ||
        block->device != worker->device ||
        !ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate")) {
        return;
    }
    loop.block = *block;
    if (block_order(block, stream) && capture(worker, &loop, stream, &graph) &&
        ok(cuGraphInstantiate(&loop.graph, graph,
                              once_in(worker, 2) ? CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH
                                                 : 0),
           "cuGraphInstantiate")) {
        worker->loop = loop;
        *block = (struct block){0};
    }
    if (graph != NULL) {
        (void)ok(cuGraphDestroy(graph), "cuGraphDestroy");
    }
    (void)ok(cuStreamDestroy(stream), "cuStreamDestroy");
}

void act_launch(struct worker *worker)
{
    struct loop *loop = &worker->loop;
    CUstream stream = any_stream(worker);

    if (loop->graph == NULL || !block_order(&loop->block, stream)) {
        return;
    }
    for (unsigned int i = 0; i < loop->count; i++) {
        const struct change *change = &loop->changes[i];

        if (!content_has_room(&loop->block.content, 2) &&
            !(change->begin == 0 && change->end == loop->block.content.words)) {
            loop->block.content.known = false;
            break;
        }
        block_apply(&loop->block, change);
    }
    if (!ok(cuGraphLaunch(loop->graph, stream), "cuGraphLaunch")) {
        loop->block.content.known = false;
    }
    block_used(&loop->block, stream);
}

void act_end_loop(struct worker *worker)
{
    struct loop *loop = &worker->loop;
    struct block block = loop->block;

    if (loop->graph == NULL) {
        return;
    }
    (void)ok(cuGraphExecDestroy(loop->graph), "cuGraphExecDestroy");
    *loop = (struct loop){0};
    if (block.content.known) {
        block_check(worker, &block);
    }
    block_free(worker, &block);
}
