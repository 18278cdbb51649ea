#include "call/arrival.h"

#include "process/native.h"

void spw_call_in_context(struct spw_call *ret_call)
{
    const struct spw_stream_info *here = spw_program_stream_current();

    spw_call_clear(ret_call);
    if (here != NULL) {
        ret_call->device = spw_device_at(here->ordinal);
        ret_call->asked.context = here->stream.context;
        ret_call->capturing = spw_graph_capture_forbids();
        ret_call->denied = spw_process_native_is_refused();
    }
}

bool spw_call_take_context(struct spw_call *call)
{
    const struct spw_stream_info *here = spw_program_stream_current();

    call->device = here != NULL ? spw_device_at(here->ordinal) : NULL;
    return here != NULL;
}

bool spw_call_is_for_other_pool(struct spw_call *call, CUmemoryPool named)
{
    CUmemoryPool pool = named, standard = spw_device_default_pool(call->device);
    struct spw_device *other;

    if (pool == NULL) {
        pool = atomic_load_explicit(&call->device->current_pool, memory_order_relaxed);
        pool = pool == NULL ? standard : pool;
    }
    if (pool != standard) {
        /* The default pool of another device is also served. */
        other = spw_device_of_pool(pool);
        call->device = other != NULL ? other : call->device;
        standard = spw_device_default_pool(call->device);
    }
    return pool != NULL && pool == standard;
}

const char *spw_call_api(const struct spw_call *call)
{
    return spw_process_outer.fn == SPW_FN_COUNT ? call->asked.api
                                                : spw_driver_symbol(spw_process_outer.fn);
}
