/* The simulated runtime as compiled code meets it: streams, kernels, variables, graphs.
 *
 *     test_runtime_code [CASE]
 *
 * Needs libcuda.so.1 of the simulator in the search path, and two devices. */
#include "test_runtime_common.h"

#include <stdlib.h>

/* ---- streams and events ---- */

static void count_up(void *data)
{
    ++*(int *)data;
}

static void count_status(cudaStream_t stream, cudaError_t status, void *data)
{
    *(int *)data += status == cudaSuccess ? 10 : 100;
}

static void test_streams(void **state)
{
    cudaStream_t a;
    cudaStream_t b;
    cudaEvent_t start;
    cudaEvent_t end;
    unsigned long long id_a;
    unsigned long long id_b;
    unsigned int flags;
    float elapsed = -1;
    int priority;
    int ordinal = -1;
    int count = 0;

    ok(cudaStreamCreateWithPriority(&a, cudaStreamNonBlocking, -1));
    ok(cudaStreamCreate(&b));
    ok(cudaStreamGetPriority(a, &priority));
    assert_int_equal(priority, -1);
    ok(cudaStreamGetFlags(a, &flags));
    assert_int_equal(flags, cudaStreamNonBlocking);
    ok(cudaStreamGetId(a, &id_a));
    ok(cudaStreamGetId(b, &id_b));
    assert_true(id_a != id_b);
    ok(cudaStreamGetDevice(a, &ordinal));
    assert_int_equal(ordinal, 0);

    ok(cudaEventCreate(&start));
    ok(cudaEventCreateWithFlags(&end, cudaEventDefault));
    ok(cudaEventRecord(start, a));
    ok(cudaLaunchHostFunc(a, count_up, &count));
    ok(cudaStreamAddCallback(a, count_status, &count, 0));
    ok(cudaEventRecord(end, a));
    ok(cudaStreamWaitEvent(b, end, 0));
    ok(cudaStreamSynchronize(b));
    assert_int_equal(count, 11);
    ok(cudaEventQuery(end));
    ok(cudaEventElapsedTime(&elapsed, start, end));
    assert_true(elapsed >= 0);
    ok(cudaStreamQuery(a));
    ok(cudaEventDestroy(start));
    ok(cudaEventDestroy(end));
    assert_int_equal(cudaStreamDestroy(0), cudaErrorInvalidResourceHandle);
    ok(cudaStreamDestroy(a));
    ok(cudaStreamDestroy(b));
}

/* ---- code ---- */

struct fatbin_wrapper {
    unsigned int magic;
    unsigned int version;
    const void *data;
    const void *unused;
};

static const uint64_t fatbin_data[8] = {0x100001ba55ed50};
static struct fatbin_wrapper wrapper = {0x466243b1, 1, fatbin_data, NULL};

/* The shadows of kernels and variables: addresses, never used otherwise. */
static char fill_shadow;
static char check_shadow;
static char missing_shadow;
static char variable_shadow[64];

static void **register_code(void)
{
    static char fill[] = "spw_fill";
    static char check[] = "spw_check";
    void **fatbin = __cudaRegisterFatBinary(&wrapper);

    assert_non_null(fatbin);
    __cudaRegisterFunction(fatbin, &fill_shadow, fill, fill, -1, NULL, NULL, NULL, NULL, NULL);
    __cudaRegisterFunction(fatbin, &check_shadow, check, check, -1, NULL, NULL, NULL, NULL, NULL);
    __cudaRegisterVar(fatbin, variable_shadow, variable_shadow, "variable", 0,
                      sizeof(variable_shadow), 0, 0);
    __cudaRegisterFatBinaryEnd(fatbin);
    return fatbin;
}

static const dim3 one = {1, 1, 1};

static void test_launch(void **state)
{
    void **fatbin = register_code();
    uint32_t *words;
    uint64_t *bad;
    uint64_t bad_count = 1;
    size_t count = 1000;
    uint32_t value = 0xabcd;
    cudaKernel_t kernel;

    assert_int_equal(calls("cuLibraryLoadData"), 0);
    ok(cudaMalloc((void **)&words, count * sizeof(*words)));
    ok(cudaMalloc((void **)&bad, sizeof(*bad)));
    ok(cudaMemset(bad, 0, sizeof(*bad)));
    ok(cudaMemset(words, 0, count * sizeof(*words)));

    void *fill[] = {&words, &count, &value};
    ok(cudaLaunchKernel(&fill_shadow, one, one, fill, 0, 0));
    assert_int_equal(calls("cuLibraryLoadData"), 1);

    void *check[] = {&words, &count, &value, &bad};
    ok(__cudaGetKernel(&kernel, &check_shadow));
    ok(__cudaLaunchKernel(kernel, one, one, check, 0, 0));
    ok(cudaMemcpy(&bad_count, bad, sizeof(bad_count), cudaMemcpyDeviceToHost));
    assert_int_equal(bad_count, 0);

    value = 1;
    cudaLaunchConfig_t config = {.gridDim = one, .blockDim = one};
    ok(cudaLaunchKernelExC(&config, &check_shadow, check));
    ok(cudaMemcpy(&bad_count, bad, sizeof(bad_count), cudaMemcpyDeviceToHost));
    assert_int_equal(bad_count, count);
    assert_int_equal(calls("cuLibraryLoadData"), 1);

    dim3 none = {0, 1, 1};
    dim3 wide = {4096, 1, 1};
    assert_int_equal(cudaLaunchKernel(&fill_shadow, none, one, fill, 0, 0),
                     cudaErrorInvalidConfiguration);
    assert_int_equal(cudaLaunchKernel(&fill_shadow, one, wide, fill, 0, 0),
                     cudaErrorInvalidConfiguration);
    assert_int_equal(cudaLaunchKernel(&missing_shadow, one, one, fill, 0, 0),
                     cudaErrorInvalidDeviceFunction);
    __cudaUnregisterFatBinary(fatbin);
    assert_int_equal(cudaLaunchKernel(&fill_shadow, one, one, fill, 0, 0),
                     cudaErrorInvalidDeviceFunction);
    assert_int_equal(calls("cuLibraryUnload"), 1);
}

static void test_launch_on_two_devices(void **state)
{
    void **fatbin = register_code();
    size_t count = 4;
    cudaKernel_t kernel;

    ok(__cudaGetKernel(&kernel, &fill_shadow));
    for (uint32_t ordinal = 0; ordinal < 2; ordinal++) {
        uint32_t back[4];
        uint32_t value = 40 + ordinal;
        uint32_t *words;
        ok(cudaSetDevice((int)ordinal));
        ok(cudaMalloc((void **)&words, sizeof(back)));
        void *fill[] = {&words, &count, &value};
        ok(__cudaLaunchKernel(kernel, one, one, fill, 0, 0));
        ok(cudaMemcpy(back, words, sizeof(back), cudaMemcpyDeviceToHost));
        assert_int_equal(back[3], value);
    }
    __cudaUnregisterFatBinary(fatbin);
}

static void test_configurations(void **state)
{
    dim3 grid = {3, 2, 1};
    dim3 block = {32, 1, 1};
    size_t shared;
    cudaStream_t stream;

    /* The arguments of a launch may launch something themselves. */
    assert_int_equal(__cudaPushCallConfiguration(grid, block, 5, cudaStreamPerThread), 0);
    assert_int_equal(__cudaPushCallConfiguration(one, one, 6, NULL), 0);
    ok(__cudaPopCallConfiguration(&grid, &block, &shared, &stream));
    assert_int_equal(grid.x, 1);
    assert_int_equal(shared, 6);
    ok(__cudaPopCallConfiguration(&grid, &block, &shared, &stream));
    assert_int_equal(grid.x, 3);
    assert_int_equal(grid.y, 2);
    assert_int_equal(block.x, 32);
    assert_int_equal(shared, 5);
    assert_ptr_equal(stream, cudaStreamPerThread);
    assert_int_equal(__cudaPopCallConfiguration(&grid, &block, &shared, &stream),
                     cudaErrorMissingConfiguration);
}

static void test_functions(void **state)
{
    void **fatbin = register_code();
    struct cudaFuncAttributes attributes;
    const char *name = NULL;
    cudaFunction_t function = NULL;
    cudaKernel_t kernel;
    size_t offset;
    size_t size;
    int blocks = 0;

    ok(cudaFuncGetAttributes(&attributes, &fill_shadow));
    assert_true(attributes.maxThreadsPerBlock >= 1024);
    assert_true(attributes.numRegs > 0);
    ok(cudaFuncSetAttribute(&fill_shadow, cudaFuncAttributeMaxDynamicSharedMemorySize, 40000));
    ok(cudaGetFuncBySymbol(&function, &fill_shadow));
    assert_non_null(function);
    ok(cudaGetKernel(&kernel, &fill_shadow));
    ok(cudaFuncGetAttributes(&attributes, kernel));
    ok(cudaFuncGetName(&name, &fill_shadow));
    assert_string_equal(name, "spw_fill");
    ok(cudaFuncGetParamInfo(&fill_shadow, 1, &offset, &size));
    assert_int_equal(offset, 8);
    assert_int_equal(size, 8);
    ok(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, &fill_shadow, 256, 0));
    assert_true(blocks >= 1);
    assert_int_equal(cudaFuncGetAttributes(&attributes, &missing_shadow),
                     cudaErrorInvalidDeviceFunction);
    __cudaUnregisterFatBinary(fatbin);
}

static void test_variables(void **state)
{
    void **fatbin = register_code();
    void *address = NULL;
    size_t size = 0;
    int out = 77;
    int in = 0;

    ok(cudaGetSymbolSize(&size, variable_shadow));
    assert_int_equal(size, sizeof(variable_shadow));
    ok(cudaGetSymbolAddress(&address, variable_shadow));
    assert_non_null(address);
    ok(cudaMemcpyToSymbol(variable_shadow, &out, sizeof(out), 12, cudaMemcpyHostToDevice));
    ok(cudaMemcpy(&in, (char *)address + 12, sizeof(in), cudaMemcpyDeviceToHost));
    assert_int_equal(in, 77);
    in = 0;
    ok(cudaMemcpyFromSymbol(&in, variable_shadow, sizeof(in), 12, cudaMemcpyDeviceToHost));
    assert_int_equal(in, 77);
    assert_int_equal(
        cudaMemcpyToSymbol(variable_shadow, &out, sizeof(out), 61, cudaMemcpyHostToDevice),
        cudaErrorInvalidValue);
    assert_int_equal(cudaGetSymbolSize(&size, &missing_shadow), cudaErrorInvalidSymbol);
    __cudaUnregisterFatBinary(fatbin);
}

static void test_sticky_error(void **state)
{
    void **fatbin = register_code();
    uint32_t *nowhere;
    size_t count = 1;
    uint32_t value = 1;
    char byte;
    void *address;
    void *fill[] = {&nowhere, &count, &value};

    ok(cudaMalloc(&address, MIB));
    ok(cudaMalloc((void **)&nowhere, MIB));
    ok(cudaFree(nowhere));
    cudaError_t error = cudaLaunchKernel(&fill_shadow, one, one, fill, 0, 0);
    if (error == cudaSuccess) {
        error = cudaDeviceSynchronize();
    }
    assert_int_equal(error, cudaErrorIllegalAddress);
    assert_int_equal(cudaMemcpy(&byte, address, 1, cudaMemcpyDefault), cudaErrorIllegalAddress);
    assert_int_equal(cudaGetLastError(), cudaErrorIllegalAddress);
    assert_int_equal(cudaGetLastError(), cudaErrorIllegalAddress);

    ok(cudaDeviceReset());
    assert_int_equal(cudaGetLastError(), cudaSuccess);
    ok(cudaMalloc(&address, MIB));
    nowhere = address;
    ok(cudaLaunchKernel(&fill_shadow, one, one, fill, 0, 0));
    ok(cudaDeviceSynchronize());
    __cudaUnregisterFatBinary(fatbin);
}

/* ---- graphs ---- */

static void test_captured_graph(void **state)
{
    void **fatbin = register_code();
    enum cudaStreamCaptureStatus status;
    unsigned long long id = 0;
    uint32_t *words;
    uint32_t back[16];
    uint32_t value = 5;
    size_t count = 16;
    size_t nodes = 0;
    cudaGraphNode_t node[4];
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t exec;

    ok(cudaStreamCreate(&stream));
    ok(cudaMalloc((void **)&words, sizeof(back)));
    ok(cudaMemset(words, 0, sizeof(back)));
    ok(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    ok(cudaStreamGetCaptureInfo(stream, &status, &id, NULL, NULL, NULL, NULL));
    assert_int_equal(status, cudaStreamCaptureStatusActive);
    assert_true(id != 0);
    void *fill[] = {&words, &count, &value};
    ok(cudaLaunchKernel(&fill_shadow, one, one, fill, 0, stream));
    ok(cudaStreamEndCapture(stream, &graph));
    ok(cudaStreamIsCapturing(stream, &status));
    assert_int_equal(status, cudaStreamCaptureStatusNone);

    ok(cudaGraphGetNodes(graph, NULL, &nodes));
    assert_int_equal(nodes, 1);
    ok(cudaGraphGetNodes(graph, node, &nodes));
    struct cudaKernelNodeParams params;
    ok(cudaGraphKernelNodeGetParams(node[0], &params));
    assert_ptr_equal(params.func, &fill_shadow);
    assert_int_equal(params.gridDim.x, 1);

    ok(cudaGraphInstantiate(&exec, graph, 0));
    ok(cudaMemcpy(back, words, sizeof(back), cudaMemcpyDeviceToHost));
    assert_int_equal(back[15], 0);
    ok(cudaGraphLaunch(exec, stream));
    ok(cudaStreamSynchronize(stream));
    ok(cudaMemcpy(back, words, sizeof(back), cudaMemcpyDeviceToHost));
    assert_int_equal(back[15], 5);
    ok(cudaGraphExecDestroy(exec));
    ok(cudaGraphDestroy(graph));
    __cudaUnregisterFatBinary(fatbin);
}

static void test_built_graph(void **state)
{
    void **fatbin = register_code();
    uint32_t *words;
    uint32_t back[4] = {0};
    uint32_t value = 9;
    size_t count = 2;
    cudaGraph_t graph;
    cudaGraphNode_t zero;
    cudaGraphNode_t fill;
    cudaGraphNode_t copy;
    cudaGraphExec_t exec;

    ok(cudaMalloc((void **)&words, sizeof(back)));
    ok(cudaGraphCreate(&graph, 0));
    struct cudaMemsetParams set = {
        .dst = words, .value = 1, .elementSize = 4, .width = 4, .height = 1};
    ok(cudaGraphAddMemsetNode(&zero, graph, NULL, 0, &set));
    void *arguments[] = {&words, &count, &value};
    struct cudaGraphNodeParams params = {
        .type = cudaGraphNodeTypeKernel,
        .kernel = {.func = &fill_shadow,
                   .gridDim = one,
                   .blockDim = one,
                   .kernelParams = arguments},
    };
    ok(cudaGraphAddNode(&fill, graph, &zero, NULL, 1, &params));
    ok(cudaGraphAddMemcpyNode1D(&copy, graph, &fill, 1, back, words, sizeof(back),
                                cudaMemcpyDeviceToHost));
    struct cudaMemcpy3DParms parms;
    ok(cudaGraphMemcpyNodeGetParams(copy, &parms));
    assert_ptr_equal(parms.dstPtr.ptr, back);
    assert_int_equal(parms.extent.width, sizeof(back));
    ok(cudaGraphInstantiate(&exec, graph, 0));
    ok(cudaGraphLaunch(exec, 0));
    ok(cudaDeviceSynchronize());
    assert_int_equal(back[1], 9);
    assert_int_equal(back[2], 1);
    ok(cudaGraphExecDestroy(exec));
    ok(cudaGraphDestroy(graph));
    __cudaUnregisterFatBinary(fatbin);
}

/* The simulated time of a kernel with one address, in nanoseconds. */
static unsigned int duration_of(cudaKernel_t kernel, void *address)
{
    void *params[] = {&address};
    cudaEvent_t begin, end;
    float milliseconds;

    ok(cudaEventCreate(&begin));
    ok(cudaEventCreate(&end));
    ok(cudaEventRecord(begin, 0));
    ok(cudaLaunchKernel(kernel, (dim3){1, 1, 1}, (dim3){32, 1, 1}, params, 0, 0));
    ok(cudaEventRecord(end, 0));
    ok(cudaDeviceSynchronize());
    ok(cudaEventElapsedTime(&milliseconds, begin, end));
    ok(cudaEventDestroy(begin));
    ok(cudaEventDestroy(end));
    return (unsigned int)(milliseconds * 1e6f + 0.5f);
}

/* The driver is told of the program's blocks: a kernel is taken to use the rest of one. */
static void test_blocks_and_time(void **state)
{
    static const char ptx[] = ".version 8.0\n.target sm_80\n.address_size 64\n"
                              ".visible .entry look(.param .u64 p)\n{\n    ret;\n}\n";
    const size_t size = 430000000;
    cudaLibrary_t library;
    cudaKernel_t kernel;
    char *block, *other;
    unsigned int whole;

    setenv("SPILLWAY_SIM_TIME", "on", 1);
    setenv("SPILLWAY_SIM_SEED", "0", 1);
    ok(cudaMalloc((void **)&block, size));
    ok(cudaMallocAsync((void **)&other, size / 2, 0));
    ok(cudaLibraryLoadData(&library, ptx, NULL, NULL, 0, NULL, NULL, 0));
    ok(cudaLibraryGetKernel(&kernel, library, "look"));
    whole = duration_of(kernel, block);
    assert_in_range(whole, 100000, 120000);
    assert_int_equal(whole - duration_of(kernel, other), 50000);
    assert_int_equal(whole - duration_of(kernel, block + size / 4 * 3), 75000);
    ok(cudaFreeAsync(other, 0));
    ok(cudaFree(block));
    ok(cudaMallocAsync((void **)&other, size / 4, 0));
    assert_int_equal(whole - duration_of(kernel, other), 75000);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_streams),
    cmocka_unit_test(test_launch),
    cmocka_unit_test(test_launch_on_two_devices),
    cmocka_unit_test(test_configurations),
    cmocka_unit_test(test_functions),
    cmocka_unit_test(test_variables),
    cmocka_unit_test(test_sticky_error),
    cmocka_unit_test(test_captured_graph),
    cmocka_unit_test(test_built_graph),
    cmocka_unit_test(test_blocks_and_time),
};

int main(int argc, char **argv)
{
    return run_cases(tests, sizeof(tests) / sizeof(tests[0]), argc > 1 ? argv[1] : NULL) != 0;
}
