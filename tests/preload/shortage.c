/* Makes calls that the driver refuses for want of memory: once, and whenever it is asked. Before
 * each of them a block was freed, whose memory the pool still has.
 *
 * Prints the name of each function, and the results of a call that is not refused, of one that is
 * refused once, of one that is always refused, and of one that is refused once after that, when the
 * pool has nothing left. Needs two devices. */
#include <cuda.h>
#include <dlfcn.h>
#include <stdint.h>

#include "check.h"

int spillway_sim_fail(const char *list); /* of the simulated driver */

enum { BYTES = 2 << 20, SPARE_BYTES = 64 << 20 };

/* The function of exactly this name, of the type of another one. */
#define EDITION(name, like) ((__typeof__(like) *)(uintptr_t)dlsym(RTLD_DEFAULT, name))

static struct {
    CUcontext first, second; /* of devices 0 and 1 */
    CUmemoryPool own, standard;
    CUgraph graph;
    CUgraphExec executable;
    CUdeviceptr range;
    CUmemGenericAllocationHandle chunk;
} test;

static void spare(void)
{
    CUdeviceptr block;

    MUST(cuMemAlloc(&block, SPARE_BYTES));
    MUST(cuMemFree(block));
    MUST(cuCtxSynchronize());
}

/* ---- memory ---- */

static CUresult free_again(CUresult result, const CUdeviceptr *block)
{
    if (result == CUDA_SUCCESS) {
        MUST(cuMemFreeAsync(*block, NULL));
        MUST(cuCtxSynchronize());
    }
    return result;
}

static CUresult from_pool(const char *name)
{
    CUdeviceptr block;

    return free_again(EDITION(name, cuMemAllocFromPoolAsync)(&block, BYTES, test.own, NULL),
                      &block);
}

/* From the pool of the program's own, which is the device's current one meanwhile. */
static CUresult ordered(const char *name)
{
    CUdeviceptr block;
    CUresult result;

    MUST(cuDeviceSetMemPool(0, test.own));
    result = EDITION(name, cuMemAllocAsync)(&block, BYTES, NULL);
    MUST(cuDeviceSetMemPool(0, test.standard));
    return free_again(result, &block);
}

static CUresult managed(const char *name)
{
    CUdeviceptr block;
    CUresult result = EDITION(name, cuMemAllocManaged)(&block, BYTES, CU_MEM_ATTACH_GLOBAL);

    if (result == CUDA_SUCCESS) {
        MUST(cuMemFree(block));
    }
    return result;
}

static CUresult create(const char *name)
{
    CUmemAllocationProp properties = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                      .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
    CUmemGenericAllocationHandle chunk;
    CUresult result = EDITION(name, cuMemCreate)(&chunk, BYTES, &properties, 0);

    if (result == CUDA_SUCCESS) {
        MUST(cuMemRelease(chunk));
    }
    return result;
}

static CUresult map(const char *name)
{
    CUresult result = EDITION(name, cuMemMap)(test.range, BYTES, 0, test.chunk, 0);

    if (result == CUDA_SUCCESS) {
        MUST(cuMemUnmap(test.range, BYTES));
    }
    return result;
}

/* ---- contexts ---- */

static CUresult end_context(CUresult result, const CUcontext *context)
{
    if (result == CUDA_SUCCESS) {
        MUST(cuCtxDestroy(*context));
    }
    return result;
}

static CUresult context_v2(const char *name)
{
    CUresult (*function)(CUcontext *, unsigned int, CUdevice) =
        (CUresult(*)(CUcontext *, unsigned int, CUdevice))(uintptr_t)dlsym(RTLD_DEFAULT, name);
    CUcontext context;

    return end_context(function(&context, 0, 0), &context);
}

static CUresult context_v3(const char *name)
{
    CUresult (*function)(CUcontext *, CUexecAffinityParam *, int, unsigned int, CUdevice) =
        (CUresult(*)(CUcontext *, CUexecAffinityParam *, int, unsigned int, CUdevice))(
            uintptr_t)dlsym(RTLD_DEFAULT, name);
    CUcontext context;

    return end_context(function(&context, NULL, 0, 0, 0), &context);
}

static CUresult context_v4(const char *name)
{
    CUcontext context;

    return end_context(EDITION(name, cuCtxCreate_v4)(&context, NULL, 0, 0), &context);
}

static CUresult retain(const char *name)
{
    CUcontext context;
    CUresult result = EDITION(name, cuDevicePrimaryCtxRetain)(&context, 0);

    if (result == CUDA_SUCCESS) {
        MUST(cuDevicePrimaryCtxRelease(0));
    }
    return result;
}

static CUresult enable(const char *name)
{
    CUresult result = EDITION(name, cuCtxEnablePeerAccess)(test.second, 0);

    if (result == CUDA_SUCCESS) {
        MUST(cuCtxDisablePeerAccess(test.second));
    }
    return result;
}

/* ---- graphs ---- */

static CUresult end_graph(CUresult result, const CUgraphExec *executable)
{
    if (result == CUDA_SUCCESS) {
        MUST(cuGraphExecDestroy(*executable));
    }
    return result;
}

static CUresult instantiate(const char *name)
{
    CUresult (*function)(CUgraphExec *, CUgraph, CUgraphNode *, char *, size_t) = (CUresult(*)(
        CUgraphExec *, CUgraph, CUgraphNode *, char *, size_t))(uintptr_t)dlsym(RTLD_DEFAULT, name);
    CUgraphExec executable;

    return end_graph(function(&executable, test.graph, NULL, NULL, 0), &executable);
}

static CUresult instantiate_with_flags(const char *name)
{
    CUgraphExec executable;

    return end_graph(EDITION(name, cuGraphInstantiateWithFlags)(&executable, test.graph, 0),
                     &executable);
}

static CUresult instantiate_with_params(const char *name)
{
    CUDA_GRAPH_INSTANTIATE_PARAMS params = {0};
    CUgraphExec executable;

    return end_graph(EDITION(name, cuGraphInstantiateWithParams)(&executable, test.graph, &params),
                     &executable);
}

static CUresult update(const char *name)
{
    CUresult (*function)(CUgraphExec, CUgraph, CUgraphNode *, CUgraphExecUpdateResult *) =
        (CUresult(*)(CUgraphExec, CUgraph, CUgraphNode *, CUgraphExecUpdateResult *))(
            uintptr_t)dlsym(RTLD_DEFAULT, name);
    CUgraphExecUpdateResult outcome;
    CUgraphNode node;

    return function(test.executable, test.graph, &node, &outcome);
}

static CUresult update_v2(const char *name)
{
    CUgraphExecUpdateResultInfo info;

    return EDITION(name, cuGraphExecUpdate)(test.executable, test.graph, &info);
}

/* ---- CUDA IPC, of memory that is the driver's ---- */

static CUresult export(const char *name)
{
    CUipcMemHandle handle;

    return EDITION(name, cuIpcGetMemHandle)(&handle, test.range);
}

static CUresult import(const char *name)
{
    CUipcMemHandle handle = {{0}};
    CUdeviceptr address;

    return EDITION(name, cuIpcOpenMemHandle)(&address, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
}

static const struct {
    const char *name;
    CUresult (*make)(const char *name);
} calls[] = {
    {"cuMemAllocAsync", ordered},
    {"cuMemAllocAsync_ptsz", ordered},
    {"cuMemAllocFromPoolAsync", from_pool},
    {"cuMemAllocFromPoolAsync_ptsz", from_pool},
    {"cuMemAllocManaged", managed},
    {"cuMemCreate", create},
    {"cuMemMap", map},
    {"cuCtxCreate_v2", context_v2},
    {"cuCtxCreate_v3", context_v3},
    {"cuCtxCreate_v4", context_v4},
    {"cuDevicePrimaryCtxRetain", retain},
    {"cuCtxEnablePeerAccess", enable},
    {"cuGraphInstantiate", instantiate},
    {"cuGraphInstantiate_v2", instantiate},
    {"cuGraphInstantiateWithFlags", instantiate_with_flags},
    {"cuGraphInstantiateWithParams", instantiate_with_params},
    {"cuGraphInstantiateWithParams_ptsz", instantiate_with_params},
    {"cuGraphExecUpdate", update},
    {"cuGraphExecUpdate_v2", update_v2},
    {"cuIpcGetMemHandle", export},
    {"cuIpcOpenMemHandle", import},
    {"cuIpcOpenMemHandle_v2", import},
};

static void prepare(void)
{
    CUmemAllocationProp properties = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                      .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
    CUmemPoolProps of_pool = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                              .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};

    MUST(cuInit(0));
    MUST(cuDevicePrimaryCtxRetain(&test.second, 1));
    MUST(cuDevicePrimaryCtxRetain(&test.first, 0));
    MUST(cuCtxSetCurrent(test.first));
    MUST(cuMemPoolCreate(&test.own, &of_pool));
    MUST(cuDeviceGetDefaultMemPool(&test.standard, 0));
    MUST(cuGraphCreate(&test.graph, 0));
    MUST(cuGraphInstantiate(&test.executable, test.graph, 0));
    MUST(cuMemAddressReserve(&test.range, BYTES, 0, 0, 0));
    MUST(cuMemCreate(&test.chunk, BYTES, &properties, 0));
}

int main(void)
{
    prepare();
    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
        CUresult plain = calls[i].make(calls[i].name), once, always, last;
        char list[100];

        spare();
        snprintf(list, sizeof(list), "%s:1", calls[i].name);
        MUST(spillway_sim_fail(list));
        once = calls[i].make(calls[i].name);
        spare();
        snprintf(list, sizeof(list), "%s:1+", calls[i].name);
        MUST(spillway_sim_fail(list));
        always = calls[i].make(calls[i].name);
        snprintf(list, sizeof(list), "%s:1", calls[i].name);
        MUST(spillway_sim_fail(list));
        last = calls[i].make(calls[i].name);
        MUST(spillway_sim_fail(NULL));
        printf("%s %d %d %d %d\n", calls[i].name, plain, once, always, last);
    }
    return 0;
}
