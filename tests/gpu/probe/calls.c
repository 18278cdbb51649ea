/* Small calls, and questions about kernels. */
#include <stdio.h>

#include "kernels.h"
#include "memory.h"
#include "sections.h"

static struct {
    CUstream stream;
    CUevent event;
    CUdeviceptr words;
} test;

static void free_and_alloc_async(void)
{
    CUdeviceptr p;

    MUST(cuMemAllocAsync(&p, MIB, test.stream));
    MUST(cuMemFreeAsync(p, test.stream));
}

static void alloc_and_free(size_t bytes)
{
    CUdeviceptr p;

    MUST(cuMemAlloc(&p, bytes));
    MUST(cuMemFree(p));
}

static void alloc_2(void)
{
    alloc_and_free(2 * MIB);
}

static void alloc_256(void)
{
    alloc_and_free(256 * MIB);
}

static void record(void)
{
    MUST(cuEventRecord(test.event, test.stream));
}

static void query(void)
{
    cuEventQuery(test.event);
}

static void wait_event(void)
{
    MUST(cuStreamWaitEvent(test.stream, test.event, 0));
}

static void is_capturing(void)
{
    CUstreamCaptureStatus status;

    MUST(cuStreamIsCapturing(test.stream, &status));
}

static void get_id(void)
{
    unsigned long long id;

    MUST(cuStreamGetId(test.stream, &id));
}

static void exchange(void)
{
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;

    MUST(cuThreadExchangeStreamCaptureMode(&mode));
    MUST(cuThreadExchangeStreamCaptureMode(&mode));
}

static void memory_info(void)
{
    size_t available, total;

    MUST(cuMemGetInfo(&available, &total));
}

static void current(void)
{
    CUcontext context;

    MUST(cuCtxGetCurrent(&context));
}

static void launch(void)
{
    kernels_fill(test.words, 1, 1, test.stream);
}

static const struct {
    const char *name;
    void (*call)(void);
    size_t count;
} calls[] = {
    {"cuMemAllocAsync and cuMemFreeAsync, 1 MiB", free_and_alloc_async, 2000},
    {"cuMemAlloc and cuMemFree, 2 MiB", alloc_2, 50},
    {"cuMemAlloc and cuMemFree, 256 MiB", alloc_256, 20},
    {"cuEventRecord", record, 20000},
    {"cuEventQuery", query, 20000},
    {"cuStreamWaitEvent", wait_event, 20000},
    {"cuStreamIsCapturing", is_capturing, 20000},
    {"cuStreamGetId", get_id, 20000},
    {"cuThreadExchangeStreamCaptureMode, twice", exchange, 20000},
    {"cuMemGetInfo", memory_info, 2000},
    {"cuCtxGetCurrent", current, 20000},
    {"cuLaunchKernel", launch, 5000},
};

void section_calls(const char *argument)
{
    MUST(cuStreamCreate(&test.stream, CU_STREAM_NON_BLOCKING));
    MUST(cuEventCreate(&test.event, CU_EVENT_DISABLE_TIMING));
    MUST(cuMemAlloc(&test.words, 1024));
    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
        const size_t count = probe_repeat(calls[i].count);

        calls[i].call();
        MUST(cuCtxSynchronize());
        double begin = probe_now();
        for (size_t n = 0; n < count; n++) {
            calls[i].call();
        }
        double took = probe_now() - begin;
        MUST(cuCtxSynchronize());
        probe_time(calls[i].name, took * 1e3 / (double)count, "ns");
    }
}

typedef CUresult (*param_info_fn)(CUfunction function, size_t index, size_t *ret_offset,
                                  size_t *ret_size);
typedef CUresult (*kernel_info_fn)(CUkernel kernel, size_t index, size_t *ret_offset,
                                   size_t *ret_size);
typedef CUresult (*name_fn)(const char **ret_name, CUfunction function);

static void ask(param_info_fn info, const char *kernel, CUfunction function)
{
    size_t offset, size;
    char subject[96];

    for (size_t index = 0; index < 4; index++) {
        CUresult result = info(function, index, &offset, &size);

        snprintf(subject, sizeof(subject), "cuFuncGetParamInfo of %s, parameter %zu", kernel,
                 index);
        if (result == CUDA_SUCCESS) {
            probe_note("figure", subject, "offset %zu, size %zu", offset, size);
        } else {
            probe_note("figure", subject, "%s", probe_error(result));
            break;
        }
    }
}

/* A kernel of a library: the handle that the runtime has under lazy loading. */
static void ask_library(param_info_fn info)
{
    kernel_info_fn of_kernel = (kernel_info_fn)probe_symbol("cuKernelGetParamInfo");
    CUlibrary library;
    CUkernel kernel;
    size_t offset, size;

    MUST(cuLibraryLoadData(&library, kernels_ptx, NULL, NULL, 0, NULL, NULL, 0));
    MUST(cuLibraryGetKernel(&kernel, library, "probe_two"));
    if (of_kernel != NULL) {
        probe_note("figure", "cuKernelGetParamInfo of a kernel, parameter 1", "%s",
                   probe_error(of_kernel(kernel, 1, &offset, &size)));
        probe_note("figure", "cuKernelGetParamInfo of a kernel, parameter 2", "%s",
                   probe_error(of_kernel(kernel, 2, &offset, &size)));
    }
    probe_note("figure", "cuFuncGetParamInfo of a kernel's handle, parameter 1", "%s",
               probe_error(info((CUfunction)kernel, 1, &offset, &size)));
    if (probe_symbol("cuFuncGetName") != NULL) {
        const char *name = NULL;
        CUresult result = ((name_fn)probe_symbol("cuFuncGetName"))(&name, (CUfunction)kernel);

        probe_note("figure", "cuFuncGetName of a kernel's handle", "%s %s", probe_error(result),
                   result == CUDA_SUCCESS && name != NULL ? name : "");
    }
}

void section_params(const char *argument)
{
    param_info_fn info = (param_info_fn)probe_symbol("cuFuncGetParamInfo");

    if (info == NULL) {
        probe_note("skipped", "cuFuncGetParamInfo", "this driver lacks it");
        return;
    }
    ask(info, "a kernel of two parameters", kernels_find("probe_two"));
    ask(info, "a kernel of none", kernels_find("probe_nothing"));
    if (argument != NULL) {
        ask_library(info);
    }
}
