/* A program with 48 MiB of blocks, some of which a CUDA graph names, that then needs 36 MiB more.
 * It prints how many words of its blocks are wrong.
 *
 *     graphs HOW BLOCKS...   the graph names these of the blocks 0 to 3. HOW:
 *         kernel, fill, copy, child   its nodes
 *         copy-in, copy-out           they copy a word from the host or to it
 *         none        there is no graph; a stream is destroyed
 *         captured    as `kernel`; the graph is captured and not yet made executable
 *         forgotten   the graph is captured and destroyed
 *         destroyed   the executable graph is destroyed
 *         refused-exec, refused-graph    as `destroyed` and `forgotten`, but the driver refuses it
 *         twice       two executable graphs name the blocks; one is destroyed
 *         updated     the executable graph named nothing and is updated
 *         changed     the executable graph names nothing, then a node's parameters are set
 *         changed-v1, changed-fill, changed-copy, changed-node, changed-child, changed-batch
 *                     the same by another function; the simulated GPU refuses the last two
 *         older-update                   as `updated`, by the older function
 *         cuGraphInstantiate...          as `kernel`; made executable by this function
 *         cuStreamBeginCapture...        as `kernel`; captured by this function
 *
 * Made for a device of 64 MiB. Exit 0 if every call succeeds. */
#include <dlfcn.h>
#include <stdbool.h>
#include <string.h>

#include "common.h"

enum { COLD = 4, COLD_BYTES = 12 * MIB, COLD_WORDS = COLD_BYTES / 4, HOTS = 3, LAUNCHES = 3 };
enum { AGE = 80 }; /* so many blocks freed make others old enough to move */

static CUfunction add_kernel;
static CUstream stream, side;
static CUdeviceptr cold[COLD];
static uint32_t expected[COLD];
static bool named[COLD];
static const char *how;

static bool is(const char *name)
{
    return strcmp(how, name) == 0;
}

/* ---- graphs ---- */

/* No copy changes anything. */
static bool copies(void)
{
    return strncmp(how, "copy", strlen("copy")) == 0;
}

static void submit_copy(int i)
{
    static uint32_t word[COLD];
    CUdeviceptr other = cold[i] + COLD_BYTES / 2;

    word[i] = expected[i];
    if (is("copy-in")) {
        MUST(cuMemcpyHtoDAsync(cold[i], &word[i], sizeof(word[i]), side));
    } else if (is("copy-out")) {
        MUST(cuMemcpyDtoHAsync(&word[i], cold[i], sizeof(word[i]), side));
    } else {
        MUST(cuMemcpyDtoDAsync(cold[i], other, COLD_BYTES / 2, side));
    }
}

static void submit(int i)
{
    if (is("fill")) {
        MUST(cuMemsetD32Async(cold[i], 7, COLD_WORDS, side));
    } else if (copies()) {
        submit_copy(i);
    } else {
        launch_add(add_kernel, &cold[i], COLD_WORDS, side);
    }
}

static bool begins(const char *start)
{
    return strncmp(how, start, strlen(start)) == 0;
}

/* The function of exactly this name, of the type of another one. */
#define EDITION(name, like) ((__typeof__(like) *)(uintptr_t)dlsym(RTLD_DEFAULT, name))

static CUresult begin_capture(void)
{
    typedef CUresult begin_v1(CUstream);
    CUgraph graph;

    if (is("cuStreamBeginCapture") || is("cuStreamBeginCapture_ptsz")) {
        return ((begin_v1 *)(uintptr_t)dlsym(RTLD_DEFAULT, how))(side);
    }
    if (begins("cuStreamBeginCaptureToGraph")) {
        MUST(cuGraphCreate(&graph, 0));
        return EDITION(how, cuStreamBeginCaptureToGraph)(side, graph, NULL, NULL, 0,
                                                         CU_STREAM_CAPTURE_MODE_RELAXED);
    }
    return EDITION(begins("cuStream") ? how : "cuStreamBeginCapture_v2",
                   cuStreamBeginCapture)(side, CU_STREAM_CAPTURE_MODE_RELAXED);
}

/* A graph of one node for each block that it shall name. */
static CUgraph capture(void)
{
    const char *end =
        strstr(how, "_ptsz") != NULL ? "cuStreamEndCapture_ptsz" : "cuStreamEndCapture";
    CUgraph graph;

    MUST(begin_capture());
    for (int i = 0; i < COLD; i++) {
        if (named[i]) {
            submit(i);
        }
    }
    MUST(EDITION(end, cuStreamEndCapture)(side, &graph));
    return graph;
}

static CUgraphExec instantiate(CUgraph graph)
{
    typedef CUresult with_log(CUgraphExec *, CUgraph, CUgraphNode *, char *, size_t);
    CUDA_GRAPH_INSTANTIATE_PARAMS params = {0};
    CUgraphExec exec;

    if (is("cuGraphInstantiate") || is("cuGraphInstantiate_v2")) {
        MUST(((with_log *)(uintptr_t)dlsym(RTLD_DEFAULT, how))(&exec, graph, NULL, NULL, 0));
    } else if (begins("cuGraphInstantiateWithParams")) {
        MUST(EDITION(how, cuGraphInstantiateWithParams)(&exec, graph, &params));
    } else {
        MUST(cuGraphInstantiateWithFlags(&exec, graph, 0));
    }
    return exec;
}

static CUgraph parent_of(CUgraph child)
{
    CUgraphNode node;
    CUgraph graph;

    MUST(cuGraphCreate(&graph, 0));
    MUST(cuGraphAddChildGraphNode(&node, graph, NULL, 0, child));
    MUST(cuGraphDestroy(child));
    return graph;
}

/* The node of a kernel that leaves the first word of a block as it is; `values` has room for its
 * arguments. */
struct arguments {
    CUdeviceptr *block;
    size_t words;
    uint32_t zero;
    void *params[3];
};

static CUDA_KERNEL_NODE_PARAMS node_of(struct arguments *values, CUdeviceptr *block)
{
    *values = (struct arguments){.block = block, .words = 1};
    values->params[0] = block;
    values->params[1] = &values->words;
    values->params[2] = &values->zero;
    return (CUDA_KERNEL_NODE_PARAMS){.func = add_kernel,
                                     .gridDimX = 1,
                                     .gridDimY = 1,
                                     .gridDimZ = 1,
                                     .blockDimX = 32,
                                     .blockDimY = 1,
                                     .blockDimZ = 1,
                                     .kernelParams = values->params};
}

/* A graph with such a node, of which no capture knows. */
static CUgraph added(CUdeviceptr *block, CUgraphNode *ret_node)
{
    struct arguments values;
    CUDA_KERNEL_NODE_PARAMS params = node_of(&values, block);
    CUgraph graph;

    MUST(cuGraphCreate(&graph, 0));
    MUST(cuGraphAddKernelNode(ret_node, graph, NULL, 0, &params));
    return graph;
}

/* The same with a fill of the first word of a block by 0, which is there already, or with a copy
 * of its second word, which is the same, to its first. */
static CUDA_MEMSET_NODE_PARAMS fill_of(CUdeviceptr block)
{
    return (CUDA_MEMSET_NODE_PARAMS){.dst = block, .elementSize = 4, .width = 1, .height = 1};
}

static CUDA_MEMCPY3D copy_in(CUdeviceptr block)
{
    return (CUDA_MEMCPY3D){.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                           .srcDevice = block + 4,
                           .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                           .dstDevice = block,
                           .WidthInBytes = 4,
                           .Height = 1,
                           .Depth = 1};
}

static CUgraph added_of_kind(CUdeviceptr *block, CUgraphNode *ret_node)
{
    CUDA_MEMSET_NODE_PARAMS fill = fill_of(*block);
    CUDA_MEMCPY3D copy = copy_in(*block);
    CUcontext context;
    CUgraph graph;

    if (!is("changed-fill") && !is("changed-copy")) {
        return added(block, ret_node);
    }
    MUST(cuCtxGetCurrent(&context));
    MUST(cuGraphCreate(&graph, 0));
    if (is("changed-fill")) {
        MUST(cuGraphAddMemsetNode(ret_node, graph, NULL, 0, &fill, context));
    } else {
        MUST(cuGraphAddMemcpyNode(ret_node, graph, NULL, 0, &copy, context));
    }
    return graph;
}

static void change(CUgraphExec exec, CUgraphNode node, CUgraph graph)
{
    struct arguments values;
    CUDA_KERNEL_NODE_PARAMS kernel = node_of(&values, &cold[0]);
    CUDA_MEMSET_NODE_PARAMS fill = fill_of(cold[0]);
    CUDA_BATCH_MEM_OP_NODE_PARAMS batch = {0};
    CUDA_MEMCPY3D copy = copy_in(cold[0]);
    CUgraphNodeParams any = {.type = CU_GRAPH_NODE_TYPE_KERNEL};
    CUDA_KERNEL_NODE_PARAMS_v1 old;
    CUcontext context;

    MUST(cuCtxGetCurrent(&context));
    memcpy(&old, &kernel, sizeof(old)); /* the beginning of the newer one */
    memcpy(&any.kernel, &kernel, sizeof(kernel));
    if (is("changed-v1")) {
        typedef CUresult set_v1(CUgraphExec, CUgraphNode, const CUDA_KERNEL_NODE_PARAMS_v1 *);

        MUST(((set_v1 *)(uintptr_t)dlsym(RTLD_DEFAULT, "cuGraphExecKernelNodeSetParams"))(
            exec, node, &old));
    } else if (is("changed-fill")) {
        MUST(cuGraphExecMemsetNodeSetParams(exec, node, &fill, context));
    } else if (is("changed-copy")) {
        MUST(cuGraphExecMemcpyNodeSetParams(exec, node, &copy, context));
    } else if (is("changed-node")) {
        MUST(cuGraphExecNodeSetParams(exec, node, &any));
    } else if (is("changed-child")) {
        (void)cuGraphExecChildGraphNodeSetParams(exec, node, graph);
    } else if (is("changed-batch")) {
        (void)cuGraphExecBatchMemOpNodeSetParams(exec, node, &batch);
    } else {
        MUST(cuGraphExecKernelNodeSetParams(exec, node, &kernel));
    }
}

static void update(CUgraphExec exec, CUgraph graph)
{
    typedef CUresult update_v1(CUgraphExec, CUgraph, CUgraphNode *, CUgraphExecUpdateResult *);
    CUgraphExecUpdateResultInfo result;
    CUgraphExecUpdateResult outcome;
    CUgraphNode node;

    if (is("older-update")) {
        MUST(((update_v1 *)(uintptr_t)dlsym(RTLD_DEFAULT, "cuGraphExecUpdate"))(exec, graph, &node,
                                                                                &outcome));
    } else {
        MUST(cuGraphExecUpdate(exec, graph, &result));
    }
}

/* An executable graph that is updated or changed after it was made. */
static CUgraphExec prepare_changed(void)
{
    CUdeviceptr small;
    CUgraphNode node;
    CUgraphExec exec;
    CUgraph graph;

    MUST(cuMemAllocAsync(&small, 8, stream));
    graph = added_of_kind(&small, &node);
    exec = instantiate(graph);
    if (begins("changed")) {
        change(exec, node, graph);
    } else {
        CUgraph next = added(&cold[0], &node);

        update(exec, next);
        MUST(cuGraphDestroy(next));
    }
    MUST(cuGraphDestroy(graph));
    return exec;
}

/* The executable graph that stays; NULL if none does. */
static CUgraphExec prepare_captured(void)
{
    CUgraphExec exec = NULL, other;
    CUgraph graph = capture();

    if (is("child")) {
        graph = parent_of(graph);
    }
    if (is("captured")) {
        return NULL;
    }
    if (!is("forgotten") && !is("refused-graph")) {
        exec = instantiate(graph);
    }
    if (is("twice")) {
        MUST(cuGraphInstantiate(&other, graph, 0));
        MUST(cuGraphExecDestroy(other));
    }
    if (is("refused-graph")) {
        MUST(cuGraphDestroy(graph) != CUDA_ERROR_UNKNOWN);
        return NULL;
    }
    MUST(cuGraphDestroy(graph));
    if (is("destroyed")) {
        MUST(cuGraphExecDestroy(exec));
        exec = NULL;
    }
    if (is("refused-exec")) {
        MUST(cuGraphExecDestroy(exec) != CUDA_ERROR_UNKNOWN);
    }
    return exec;
}

static bool changes(void)
{
    return is("updated") || is("older-update") || begins("changed");
}

static CUgraphExec prepare(void)
{
    CUstream brief;

    if (is("none")) {
        MUST(cuStreamCreate(&brief, CU_STREAM_NON_BLOCKING));
        MUST(cuMemsetD32Async(cold[0], 0, COLD_WORDS, brief));
        MUST(cuStreamSynchronize(brief));
        MUST(cuStreamDestroy(brief));
        return NULL;
    }
    return changes() ? prepare_changed() : prepare_captured();
}

static void launch(CUgraphExec exec)
{
    for (int i = 0; exec != NULL && i < LAUNCHES; i++) {
        MUST(cuGraphLaunch(exec, side));
        for (int k = 0; k < COLD; k++) {
            bool adds = !is("fill") && !copies() && !changes();

            expected[k] = named[k] && is("fill") ? 7 : expected[k] + (named[k] && adds);
        }
    }
    MUST(cuStreamSynchronize(side));
}

/* ---- pressure ---- */

static void press(void)
{
    CUdeviceptr hot[HOTS], brief;

    for (int i = 0; i < AGE; i++) {
        MUST(cuMemAllocAsync(&brief, 512, stream));
        MUST(cuMemFreeAsync(brief, stream));
    }
    for (int i = 0; i < HOTS; i++) {
        MUST(cuMemAllocAsync(&hot[i], COLD_BYTES, stream));
        MUST(cuMemsetD8Async(hot[i], 0xaa, COLD_BYTES, stream));
    }
    MUST(cuStreamSynchronize(stream));
    for (int i = 0; i < HOTS; i++) {
        MUST(cuMemFreeAsync(hot[i], stream));
    }
}

int main(int argc, char **argv)
{
    CUgraphExec exec;
    CUmodule module;
    size_t wrong = 0;

    how = argc > 1 ? argv[1] : "kernel";
    for (int i = 2; i < argc; i++) {
        named[atoi(argv[i]) % COLD] = true;
    }
    enter_device(0, &module);
    MUST(cuModuleGetFunction(&add_kernel, module, "spw_add"));
    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    MUST(cuStreamCreate(&side, CU_STREAM_NON_BLOCKING));
    for (int i = 0; i < COLD; i++) {
        expected[i] = new_block(&cold[i], i, COLD_WORDS, stream);
    }
    MUST(cuCtxSynchronize());
    exec = prepare();
    launch(exec);
    press();
    launch(exec);
    for (int i = 0; i < COLD; i++) {
        wrong += count_wrong(cold[i], COLD_WORDS, expected[i]);
    }
    printf("%zu words wrong\n", wrong);
    return 0;
}
