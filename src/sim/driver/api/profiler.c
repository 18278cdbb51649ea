/* Profiling: there is no profiler, so both functions do nothing. */
#include "sim/driver/api/entry.h"

/* As in cudaProfiler.h, which the wheel of the runtime's headers does not contain. */
CUresult CUDAAPI cuProfilerStart(void);
CUresult CUDAAPI cuProfilerStop(void);

SIM_API(cuProfilerStart, SIM_CONTEXT, (void))
{
    return CUDA_SUCCESS;
}

SIM_API(cuProfilerStop, SIM_CONTEXT, (void))
{
    return CUDA_SUCCESS;
}
