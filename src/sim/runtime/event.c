/* Events. */
#include <stddef.h>

#include "sim/runtime/entry.h"

SIMRT_API(cudaEventCreate, SIMRT_CONTEXT, (cudaEvent_t * ret_event), (ret_event))
{
    return simrt_error(simrt_driver.cuEventCreate(ret_event, CU_EVENT_DEFAULT));
}

SIMRT_API(cudaEventCreateWithFlags, SIMRT_CONTEXT, (cudaEvent_t * ret_event, unsigned int flags),
          (ret_event, flags))
{
    return simrt_error(simrt_driver.cuEventCreate(ret_event, flags));
}

SIMRT_API(cudaEventDestroy, SIMRT_CONTEXT, (cudaEvent_t event), (event))
{
    return simrt_error(simrt_driver.cuEventDestroy(event));
}

SIMRT_API(cudaEventQuery, SIMRT_CONTEXT, (cudaEvent_t event), (event))
{
    return simrt_error(simrt_driver.cuEventQuery(event));
}

SIMRT_API(cudaEventSynchronize, SIMRT_CONTEXT, (cudaEvent_t event), (event))
{
    return simrt_error(simrt_driver.cuEventSynchronize(event));
}

SIMRT_API(cudaEventElapsedTime, SIMRT_CONTEXT,
          (float *ret_milliseconds, cudaEvent_t start, cudaEvent_t end),
          (ret_milliseconds, start, end))
{
    return simrt_error(simrt_driver.cuEventElapsedTime(ret_milliseconds, start, end));
}

SIMRT_API_PTSZ(cudaEventRecord, SIMRT_CONTEXT, (cudaEvent_t event, cudaStream_t stream),
               (event, stream))
{
    return simrt_error(simrt_driver.cuEventRecord[ptsz](event, stream));
}

SIMRT_API_PTSZ(cudaEventRecordWithFlags, SIMRT_CONTEXT,
               (cudaEvent_t event, cudaStream_t stream, unsigned int flags), (event, stream, flags))
{
    return simrt_error(simrt_driver.cuEventRecordWithFlags[ptsz](event, stream, flags));
}
