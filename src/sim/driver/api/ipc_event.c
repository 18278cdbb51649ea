/* Events between processes. Each process has its own virtual time, so a shared event completes in
 * the call that records or shares it. The other process never waits, because it always finds the
 * event complete. */
#include <string.h>
#include <unistd.h>

#include "sim/driver/api/entry.h"
#include "sim/driver/core/context.h"
#include "sim/driver/exec/event.h"
#include "sim/driver/graph/stream_capture.h"

#define HANDLE_MAGIC UINT64_C(0x6576656d69737073)
#define SHARED_FLAGS (CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING)

struct handle {
    uint64_t magic;
    uint32_t flags;
    int32_t pid;
};

_Static_assert(sizeof(struct handle) <= sizeof(CUipcEventHandle), "the handle must fit");

SIM_API(cuIpcGetEventHandle, SIM_CONTEXT, (CUipcEventHandle * pHandle, CUevent hEvent))
{
    struct sim_event *event;
    struct handle handle;
    CUresult result = sim_event_resolve(hEvent, &event);

    if (result != CUDA_SUCCESS) {
        return result;
    }
    if (pHandle == NULL || (event->flags & SHARED_FLAGS) != SHARED_FLAGS) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    result = sim_capture_forbids_event(event);
    if (result != CUDA_SUCCESS) {
        return result;
    }
    handle = (struct handle){HANDLE_MAGIC, event->flags, (int32_t)getpid()};
    event->shared = true;
    memset(pHandle, 0, sizeof(*pHandle));
    memcpy(pHandle, &handle, sizeof(handle));
    return sim_event_settle(event);
}

SIM_API(cuIpcOpenEventHandle, SIM_CONTEXT, (CUevent * phEvent, CUipcEventHandle given))
{
    struct sim_event *event;
    struct handle handle;

    memcpy(&handle, &given, sizeof(handle));
    /* cuda.h: a handle may be opened only in another process. */
    if (phEvent == NULL || handle.magic != HANDLE_MAGIC || handle.pid == (int32_t)getpid()) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    event = sim_event_new(sim_ctx_current(), handle.flags);
    if (event == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    event->shared = true;
    *phEvent = event->handle;
    return CUDA_SUCCESS;
}
