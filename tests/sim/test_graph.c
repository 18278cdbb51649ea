/* Graphs: building, launching, updating, memory nodes, user objects. */
#include "work.h"

#include <stdatomic.h>
#include <unistd.h>

static CUgraph new_graph(void)
{
    CUgraph graph = NULL;

    OK(cuGraphCreate(&graph, 0));
    return graph;
}

static CUgraphExec instantiate(CUgraph graph)
{
    CUgraphExec exec = NULL;

    OK(cuGraphInstantiate(&exec, graph, 0));
    return exec;
}

/* Parameters of a launch of spw_add or spw_fill, kept for as long as they are referred to. */
struct word_args {
    CUdeviceptr p;
    size_t n_words;
    uint32_t value;
    void *params[3];
};

static CUDA_KERNEL_NODE_PARAMS kernel_params(CUfunction function, struct word_args *args)
{
    args->params[0] = &args->p;
    args->params[1] = &args->n_words;
    args->params[2] = &args->value;
    return (CUDA_KERNEL_NODE_PARAMS){
        .func = function,
        .gridDimX = 1,
        .gridDimY = 1,
        .gridDimZ = 1,
        .blockDimX = 32,
        .blockDimY = 1,
        .blockDimZ = 1,
        .kernelParams = args->params,
    };
}

static void test_captured_graph_runs(void **state)
{
    const struct work *work = *state;
    CUstream stream = new_stream(CU_STREAM_NON_BLOCKING);
    CUdeviceptr words = new_words(2);
    CUgraph graph;
    CUgraphExec exec;

    OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    OK(launch_add(work, stream, words, 1, 5));
    OK(launch_copy(work, stream, words + 4, words, 1));
    OK(cuStreamEndCapture(stream, &graph));
    exec = instantiate(graph);
    OK(cuGraphDestroy(graph)); /* the executable graph does not need it */
    for (uint32_t i = 1; i <= 3; i++) {
        OK(cuGraphLaunch(exec, stream));
        assert_int_equal(word_at(words + 4, stream), 5 * i);
    }
    OK(cuGraphUpload(exec, stream));
    OK(cuGraphExecDestroy(exec));
    FAILS(cuGraphLaunch(exec, stream), CUDA_ERROR_INVALID_VALUE);
}

/* Memory that a node names is checked again each time it runs. */
static void test_memory_gone_before_the_launch(void **state)
{
    const struct work *work = *state;
    CUstream stream = new_stream(CU_STREAM_NON_BLOCKING);
    CUdeviceptr va = reserve(2 * MIB);
    CUmemGenericAllocationHandle chunk = create_chunk(2 * MIB);
    CUgraphExec exec;
    CUgraph graph;

    OK(cuMemMap(va, 2 * MIB, 0, chunk, 0));
    OK(cuMemRelease(chunk));
    allow(va, 2 * MIB);
    OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    OK(launch_fill(work, stream, va, 4, 1));
    OK(cuStreamEndCapture(stream, &graph));
    exec = instantiate(graph);
    OK(cuGraphLaunch(exec, stream));
    OK(cuStreamSynchronize(stream));
    OK(cuMemUnmap(va, 2 * MIB));
    OK(cuGraphLaunch(exec, stream));
    FAILS(cuStreamSynchronize(stream), CUDA_ERROR_ILLEGAL_ADDRESS);
    OK(cuGraphExecDestroy(exec));
    OK(cuGraphDestroy(graph));
}

static void test_nodes_and_edges(void **state)
{
    const struct work *work = *state;
    CUdeviceptr words = new_words(4);
    CUgraph graph = new_graph();
    CUgraphNode nodes[4], from[4], to[4], listed[6];
    struct word_args args = {.p = words, .n_words = 4, .value = 3};
    CUDA_KERNEL_NODE_PARAMS kernel = kernel_params(work->fill, &args);
    CUDA_MEMSET_NODE_PARAMS memset_params = {
        .dst = words, .value = 9, .elementSize = 4, .width = 1, .height = 1};
    size_t count = 6;

    OK(cuGraphAddEmptyNode(&nodes[0], graph, NULL, 0));
    OK(cuGraphAddKernelNode(&nodes[1], graph, nodes, 1, &kernel));
    OK(cuGraphAddMemsetNode(&nodes[2], graph, nodes, 2, &memset_params, work->ctx));
    FAILS(cuGraphAddEmptyNode(&nodes[3], graph, (CUgraphNode[]){nodes[0], nodes[0]}, 2),
          CUDA_ERROR_INVALID_VALUE);
    OK(cuGraphGetNodes(graph, listed, &count));
    assert_int_equal(count, 3);
    assert_ptr_equal(listed[1], nodes[1]);
    assert_null(listed[3]);
    count = 4;
    OK(cuGraphGetEdges(graph, from, to, NULL, &count));
    assert_int_equal(count, 3);
    assert_ptr_equal(from[2], nodes[1]);
    assert_ptr_equal(to[2], nodes[2]);
    count = 0;
    OK(cuGraphNodeGetDependentNodes(nodes[0], NULL, NULL, &count));
    assert_int_equal(count, 2);

    OK(cuGraphRemoveDependencies(graph, from, to, NULL, 1));
    FAILS(cuGraphRemoveDependencies(graph, from, to, NULL, 1), CUDA_ERROR_INVALID_VALUE);
    OK(cuGraphAddDependencies(graph, &nodes[2], &nodes[0], NULL, 1));
    OK(cuGraphDestroyNode(nodes[0]));
    count = 6;
    OK(cuGraphGetNodes(graph, listed, &count));
    assert_int_equal(count, 2);
    FAILS(cuGraphDestroyNode(nodes[0]), CUDA_ERROR_INVALID_VALUE);

    OK(cuGraphLaunch(instantiate(graph), NULL));
    assert_int_equal(word_at(words, NULL), 9);
    assert_int_equal(word_at(words + 4, NULL), 3);
    OK(cuGraphDestroy(graph));
}

static void test_cycle(void **state)
{
    CUgraph graph = new_graph();
    CUgraphNode a, b;
    CUgraphExec exec;

    OK(cuGraphAddEmptyNode(&a, graph, NULL, 0));
    OK(cuGraphAddEmptyNode(&b, graph, &a, 1));
    FAILS(cuGraphAddDependencies(graph, &a, &b, NULL, 1), CUDA_ERROR_INVALID_VALUE);
    OK(cuGraphAddDependencies(graph, &b, &a, NULL, 1));
    FAILS(cuGraphInstantiate(&exec, graph, 0), CUDA_ERROR_INVALID_VALUE);
    OK(cuGraphDestroy(graph));
}

/* The order of the nodes is that of the edges, not of creation. */
static void test_order(void **state)
{
    const struct work *work = *state;
    CUdeviceptr words = new_words(1);
    CUgraph graph = new_graph();
    CUgraphNode last, first;
    struct word_args add = {.p = words, .n_words = 1, .value = 2};
    struct word_args fill = {.p = words, .n_words = 1, .value = 10};
    CUDA_KERNEL_NODE_PARAMS adds = kernel_params(work->add, &add);
    CUDA_KERNEL_NODE_PARAMS fills = kernel_params(work->fill, &fill);

    OK(cuGraphAddKernelNode(&last, graph, NULL, 0, &adds));
    OK(cuGraphAddKernelNode(&first, graph, NULL, 0, &fills));
    OK(cuGraphAddDependencies(graph, &first, &last, NULL, 1));
    OK(cuGraphLaunch(instantiate(graph), NULL));
    assert_int_equal(word_at(words, NULL), 12);
    OK(cuGraphDestroy(graph));
}

static void test_parameters_can_be_changed(void **state)
{
    const struct work *work = *state;
    CUdeviceptr words = new_words(1);
    CUgraph graph = new_graph();
    CUgraphExec exec;
    CUgraphNode node;
    struct word_args args = {.p = words, .n_words = 1, .value = 1};
    CUDA_KERNEL_NODE_PARAMS params = kernel_params(work->fill, &args), got;
    unsigned int enabled = 9;

    OK(cuGraphAddKernelNode(&node, graph, NULL, 0, &params));
    exec = instantiate(graph);
    args.value = 99; /* was copied */
    OK(cuGraphLaunch(exec, NULL));
    assert_int_equal(word_at(words, NULL), 1);
    OK(cuGraphKernelNodeGetParams(node, &got));
    assert_ptr_equal(got.func, work->fill);
    assert_int_equal(*(uint32_t *)got.kernelParams[2], 1);

    OK(cuGraphExecKernelNodeSetParams(exec, node, &params));
    OK(cuGraphLaunch(exec, NULL));
    assert_int_equal(word_at(words, NULL), 99);
    args.value = 50;
    OK(cuGraphKernelNodeSetParams(node, &params)); /* does not reach what was made before */
    OK(cuGraphLaunch(exec, NULL));
    assert_int_equal(word_at(words, NULL), 99);

    OK(cuGraphNodeSetEnabled(exec, node, 0));
    OK(cuGraphNodeGetEnabled(exec, node, &enabled));
    assert_int_equal(enabled, 0);
    OK(cuMemsetD32(words, 0, 1));
    OK(cuGraphLaunch(exec, NULL));
    assert_int_equal(word_at(words, NULL), 0);
    OK(cuGraphDestroy(graph));
}

static void test_update(void **state)
{
    CUdeviceptr words = new_words(1);
    CUgraph first = new_graph(), second = new_graph(), longer = new_graph();
    CUDA_MEMSET_NODE_PARAMS params = {
        .dst = words, .value = 1, .elementSize = 4, .width = 1, .height = 1};
    CUgraphExecUpdateResultInfo info;
    CUgraphNode node, empty;
    CUgraphExec exec;

    OK(cuGraphAddMemsetNode(&node, first, NULL, 0, &params, NULL));
    params.value = 2;
    OK(cuGraphAddMemsetNode(&node, second, NULL, 0, &params, NULL));
    OK(cuGraphAddEmptyNode(&empty, longer, NULL, 0));
    exec = instantiate(first);
    OK(cuGraphExecUpdate(exec, second, &info));
    assert_int_equal(info.result, CU_GRAPH_EXEC_UPDATE_SUCCESS);
    OK(cuGraphLaunch(exec, NULL));
    assert_int_equal(word_at(words, NULL), 2);

    FAILS(cuGraphExecUpdate(exec, longer, &info), CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
    assert_int_equal(info.result, CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED);
    assert_ptr_equal(info.errorNode, empty);
    OK(cuGraphAddEmptyNode(&empty, longer, NULL, 0));
    FAILS(cuGraphExecUpdate(exec, longer, &info), CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
    assert_int_equal(info.result, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
    OK(cuGraphExecDestroy(exec));
    OK(cuGraphDestroy(first));
    OK(cuGraphDestroy(second));
    OK(cuGraphDestroy(longer));
}

static void test_children_and_clones(void **state)
{
    CUdeviceptr words = new_words(2);
    CUgraph inner = new_graph(), outer = new_graph(), clone, found;
    CUDA_MEMSET_NODE_PARAMS params = {
        .dst = words, .value = 4, .elementSize = 4, .width = 1, .height = 1};
    CUDA_MEMCPY3D copy = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                          .srcDevice = words,
                          .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                          .dstDevice = words + 4,
                          .WidthInBytes = 4,
                          .Height = 1,
                          .Depth = 1};
    CUgraphNode memset_node, child, copy_node, in_clone;
    CUgraphExec exec;

    OK(cuGraphAddMemsetNode(&memset_node, inner, NULL, 0, &params, NULL));
    OK(cuGraphAddChildGraphNode(&child, outer, NULL, 0, inner));
    OK(cuGraphDestroy(inner));
    OK(cuGraphAddMemcpyNode(&copy_node, outer, &child, 1, &copy, NULL));
    OK(cuGraphChildGraphNodeGetGraph(child, &found));
    FAILS(cuGraphDestroy(found), CUDA_ERROR_INVALID_VALUE);
    OK(cuGraphClone(&clone, outer));
    OK(cuGraphNodeFindInClone(&in_clone, copy_node, clone));
    FAILS(cuGraphNodeFindInClone(&child, in_clone, clone), CUDA_ERROR_INVALID_VALUE);
    OK(cuGraphDestroy(outer));
    exec = instantiate(clone);
    OK(cuGraphLaunch(exec, NULL));
    assert_int_equal(word_at(words + 4, NULL), 4);
    OK(cuGraphDestroy(clone));
    OK(cuGraphExecDestroy(exec));
}

/* Launches of one executable graph do not overlap; those of another may. */
static void test_launches_are_ordered(void **state)
{
    const struct work *work = *state;
    CUstream a = new_stream(CU_STREAM_NON_BLOCKING), b = new_stream(CU_STREAM_NON_BLOCKING);
    CUstream other = new_stream(CU_STREAM_NON_BLOCKING);
    CUdeviceptr words = new_words(1);
    uint32_t *flag = new_flag();
    CUgraphExec exec;
    CUgraph graph;

    OK(cuStreamBeginCapture(a, CU_STREAM_CAPTURE_MODE_GLOBAL));
    OK(launch_add(work, a, words, 1, 1));
    OK(launch_spin(work, a, device_address(flag)));
    OK(cuStreamEndCapture(a, &graph));
    exec = instantiate(graph);
    OK(cuGraphDestroy(graph));
    OK(cuGraphLaunch(exec, a));
    OK(cuGraphLaunch(exec, b));
    OK(cuGraphExecDestroy(exec)); /* takes effect when it has run */
    while (word_at(words, other) == 0) {
    }
    for (int i = 0; i < 100; i++) {
        FAILS(cuStreamQuery(b), CUDA_ERROR_NOT_READY);
    }
    assert_int_equal(word_at(words, other), 1);
    *flag = 1;
    OK(cuStreamSynchronize(b));
    assert_int_equal(word_at(words, b), 2);
}

static void test_instantiation_is_charged(void **state)
{
    CUdeviceptr all;
    CUgraph graph = new_graph();
    CUgraphNode node;
    CUgraphExec exec;
    size_t before = free_bytes();

    OK(cuGraphAddEmptyNode(&node, graph, NULL, 0));
    exec = instantiate(graph);
    assert_int_equal(before - free_bytes(), 64 << 10);
    OK(cuGraphExecDestroy(exec));
    assert_int_equal(free_bytes(), before);
    for (int i = 0; i < 1000; i++) {
        OK(cuGraphAddEmptyNode(&node, graph, NULL, 0));
    }
    OK(cuMemAlloc(&all, free_bytes() / (2 * MIB) * (2 * MIB)));
    FAILS(cuGraphInstantiate(&exec, graph, 0), CUDA_ERROR_OUT_OF_MEMORY);
    OK(cuMemFree(all));
    exec = instantiate(graph);
    OK(cuGraphExecDestroy(exec));
    OK(cuGraphDestroy(graph));
}

static void test_memory_allocated_in_a_capture(void **state)
{
    const struct work *work = *state;
    CUstream stream = new_stream(CU_STREAM_NON_BLOCKING);
    CUdeviceptr words = new_words(1), temporary = 0;
    size_t before = free_bytes(), count;
    cuuint64_t used = 9;
    CUgraph graph, clone;
    CUgraphExec exec, second;

    OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    OK(cuMemAllocAsync(&temporary, 4 * MIB, stream));
    OK(launch_fill(work, stream, temporary, MIB, 8));
    OK(launch_copy(work, stream, words, temporary, 1));
    OK(cuMemFreeAsync(temporary, stream));
    FAILS(cuMemFreeAsync(words, stream), CUDA_ERROR_INVALID_VALUE);
    OK(cuStreamEndCapture(stream, &graph));
    OK(cuGraphGetNodes(graph, NULL, &count));
    assert_int_equal(count, 4);
    FAILS(cuGraphClone(&clone, graph), CUDA_ERROR_NOT_SUPPORTED);

    exec = instantiate(graph);
    FAILS(cuGraphInstantiate(&second, graph, 0), CUDA_ERROR_NOT_SUPPORTED);
    OK(cuGraphLaunch(exec, stream));
    OK(cuGraphLaunch(exec, stream));
    assert_int_equal(word_at(words, stream), 8);
    assert_true(before - free_bytes() >= 4 * MIB);
    OK(cuDeviceGetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, &used));
    assert_int_equal(used, 0);
    OK(cuDeviceGetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, &used));
    assert_int_equal(used, 4 * MIB);
    OK(cuGraphExecDestroy(exec));
    OK(cuGraphDestroy(graph));
    assert_int_equal(free_bytes(), before);
}

static void test_memory_that_outlives_the_launch(void **state)
{
    CUstream stream = new_stream(CU_STREAM_NON_BLOCKING);
    CUDA_MEM_ALLOC_NODE_PARAMS params = {
        .poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                      .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}},
        .bytesize = 4096,
    };
    CUgraph graph = new_graph();
    CUgraphExec exec;
    CUgraphNode node;

    OK(cuGraphAddMemAllocNode(&node, graph, NULL, 0, &params));
    assert_int_not_equal(params.dptr, 0);
    exec = instantiate(graph);
    OK(cuGraphLaunch(exec, stream));
    FAILS(cuGraphLaunch(exec, stream), CUDA_ERROR_INVALID_VALUE); /* not freed */
    OK(cuMemsetD32Async(params.dptr, 1, 4, stream));
    OK(cuMemFreeAsync(params.dptr, stream));
    FAILS(cuMemFreeAsync(params.dptr, stream), CUDA_ERROR_INVALID_VALUE);
    OK(cuGraphLaunch(exec, stream));
    OK(cuMemFree(params.dptr));
    OK(cuGraphExecDestroy(exec));

    OK(cuGraphInstantiate(&exec, graph, CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH));
    OK(cuGraphLaunch(exec, stream));
    OK(cuGraphLaunch(exec, stream));
    OK(cuGraphExecDestroy(exec));
    OK(cuGraphDestroy(graph));
}

static void test_events_and_captured_launches(void **state)
{
    const struct work *work = *state;
    CUstream stream = new_stream(CU_STREAM_NON_BLOCKING);
    CUstream other = new_stream(CU_STREAM_NON_BLOCKING);
    CUevent done = new_event(0);
    CUdeviceptr words = new_words(1);
    uint32_t *flag = new_flag();
    CUgraph inner = new_graph(), graph;
    struct word_args args = {.p = words, .n_words = 1, .value = 3};
    CUDA_KERNEL_NODE_PARAMS params = kernel_params(work->add, &args);
    CUgraphNode add, record;
    CUgraphExec inner_exec, exec;

    OK(cuGraphAddKernelNode(&add, inner, NULL, 0, &params));
    OK(cuGraphAddEventRecordNode(&record, inner, &add, 1, done));
    inner_exec = instantiate(inner);
    OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    OK(launch_spin(work, stream, device_address(flag)));
    OK(cuGraphLaunch(inner_exec, stream)); /* becomes a node */
    OK(cuStreamEndCapture(stream, &graph));
    exec = instantiate(graph);
    OK(cuGraphLaunch(exec, stream));
    FAILS(cuEventQuery(done), CUDA_ERROR_NOT_READY);
    OK(cuStreamWaitEvent(other, done, 0));
    *flag = 1;
    assert_int_equal(word_at(words, other), 3);
    OK(cuGraphDestroy(inner));
    OK(cuGraphDestroy(graph));
}

static void count_call(void *data)
{
    atomic_fetch_add((atomic_int *)data, 1);
}

static void wait_for(atomic_int *count, int wanted)
{
    for (int i = 0; i < 2000 && *count != wanted; i++) {
        usleep(1000);
    }
    assert_int_equal(*count, wanted);
}

static void test_host_nodes(void **state)
{
    CUgraph graph = new_graph();
    atomic_int calls = 0;
    CUDA_HOST_NODE_PARAMS params = {.fn = count_call, .userData = &calls}, got;
    CUgraphNode node;
    CUgraphExec exec;

    OK(cuGraphAddHostNode(&node, graph, NULL, 0, &params));
    OK(cuGraphHostNodeGetParams(node, &got));
    assert_ptr_equal(got.userData, &calls);
    exec = instantiate(graph);
    OK(cuGraphLaunch(exec, NULL));
    OK(cuGraphLaunch(exec, NULL));
    OK(cuCtxSynchronize());
    assert_int_equal(calls, 2);
    OK(cuGraphDestroy(graph));
}

static void test_user_objects(void **state)
{
    CUgraph graph = new_graph();
    CUuserObject object;
    CUgraphExec exec;
    atomic_int destroyed = 0;

    FAILS(cuUserObjectCreate(&object, &destroyed, count_call, 1, 0), CUDA_ERROR_INVALID_VALUE);
    OK(cuUserObjectCreate(&object, &destroyed, count_call, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
    OK(cuGraphRetainUserObject(graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE));
    exec = instantiate(graph);
    OK(cuGraphDestroy(graph));
    OK(cuCtxSynchronize());
    assert_int_equal(destroyed, 0); /* the executable graph holds it */
    OK(cuGraphExecDestroy(exec));
    wait_for(&destroyed, 1);
    FAILS(cuUserObjectRelease(object, 1), CUDA_ERROR_INVALID_VALUE);
}

static void test_dot(void **state)
{
    char path[] = "/tmp/spillway-test-XXXXXX", text[200] = "";
    CUgraph graph = new_graph();
    CUgraphNode a, b;
    FILE *file;

    assert_true(mkstemp(path) >= 0);
    OK(cuGraphAddEmptyNode(&a, graph, NULL, 0));
    OK(cuGraphAddEmptyNode(&b, graph, &a, 1));
    OK(cuGraphDebugDotPrint(graph, path, 0));
    file = fopen(path, "r");
    assert_true(fread(text, 1, sizeof(text) - 1, file) > 0);
    fclose(file);
    unlink(path);
    assert_non_null(strstr(text, "n0 -> n1"));
    OK(cuGraphDestroy(graph));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORK_TEST(test_captured_graph_runs),
        WORK_TEST(test_memory_gone_before_the_launch),
        WORK_TEST(test_nodes_and_edges),
        WORK_TEST(test_cycle),
        WORK_TEST(test_order),
        WORK_TEST(test_parameters_can_be_changed),
        WORK_TEST(test_update),
        WORK_TEST(test_children_and_clones),
        WORK_TEST(test_launches_are_ordered),
        WORK_TEST(test_instantiation_is_charged),
        WORK_TEST(test_memory_allocated_in_a_capture),
        WORK_TEST(test_memory_that_outlives_the_launch),
        WORK_TEST(test_events_and_captured_launches),
        WORK_TEST(test_host_nodes),
        WORK_TEST(test_user_objects),
        WORK_TEST(test_dot),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
