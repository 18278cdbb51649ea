/* The arrival of the program's calls that allocate or free.
 *
 * The generated entries (intercept/gen_entries.py) begin a call, find its stream, context or block,
 * pass it to its handler, and end it. Between begin and end the thread holds a lease
 * (device/lease.h).
 *
 * Locking: the functions take the locks of program/stream.h and device/device.h, so the caller
 * holds none. */
#pragma once

#include "call/call.h"
#include "call/site.h"
#include "device/device.h"
#include "device/lease.h"
#include "graph/capture.h"
#include "migrate/move/barrier.h"
#include "policy/state.h"
#include "program/stream.h"
#include "record/record.h"
#include "submit/arguments.h"

/* ---- the entry ---- */

/* Begins a call at the entry of a driver function; `caller` is the return address. Returns false if
 * the call is spillway's own, or if CUDA is not in use. The real driver then serves the call, and
 * spw_call_end is not called. Otherwise one of the functions below must fill in the struct. */
static inline bool spw_call_begin(const void *caller)
{
    if (!spw_process_enter(caller)) {
        return false;
    }
    spw_device_lease_enter();
    return true;
}

static inline void spw_call_end(void)
{
    spw_device_lease_leave();
}

/* Clears a call that allocates. The members are cleared one by one, because gcc clears a whole
 * struct of this size with an instruction that takes 15 ns. */
static inline void spw_call_clear(struct spw_call *ret_call)
{
    ret_call->driver = spw_process_driver_serving();
    ret_call->device = NULL;
    ret_call->pool = NULL;
    ret_call->asked.stream = NULL;
    ret_call->asked.context = NULL;
    ret_call->asked.placement = NULL;
    ret_call->asked.site = 0;
    ret_call->asked.may_spill = ret_call->asked.may_move = false;
    ret_call->unusable = CUDA_SUCCESS;
    ret_call->rule = 0;
    ret_call->caller = SPW_CALLER_OTHER;
    ret_call->kind = SPW_LEDGER_PASSED;
    ret_call->observed = ret_call->ruled = ret_call->recorded = ret_call->capturing = false;
    ret_call->denied = ret_call->stays_on_host = ret_call->repeated = false;
}

/* Sets the stream of a call. Sets call->unusable to an error if an open capture forbids the use of
 * the stream. */
static inline void spw_call_enter_stream(struct spw_call *call, const struct spw_stream_info *info)
{
    call->asked.stream = &info->stream;
    call->asked.context = info->stream.context;
    if (SPW_UNLIKELY(atomic_load_explicit(&call->driver->captures_open, memory_order_relaxed) >
                     0)) {
        call->unusable = spw_graph_capture_ask(info, &call->capturing);
    }
}

/* Fills in a call that allocates on a stream, in the order of that stream. `per_thread` is as for
 * spw_program_stream_get. */
static inline void spw_call_on_stream(struct spw_call *ret_call, CUstream handle, bool per_thread)
{
    const struct spw_stream_info *info = spw_program_stream_get(handle, per_thread);

    spw_call_clear(ret_call);
    if (SPW_LIKELY(info != NULL)) {
        ret_call->device = spw_device_at(info->ordinal);
        spw_call_enter_stream(ret_call, info);
    }
}

/* Fills in a call that allocates in the current context. The call has no stream order. */
void spw_call_in_context(struct spw_call *ret_call);

/* Fills in a call that frees the block at `address`. The call has no stream order. Of the request
 * call->asked, only `stream` is set. */
static inline void spw_call_of_block(struct spw_call *ret_call, CUdeviceptr address)
{
    ret_call->driver = spw_process_driver_serving();
    ret_call->device = spw_device_owner(address, &ret_call->pool);
    ret_call->asked.stream = NULL;
    ret_call->unusable = CUDA_SUCCESS;
    ret_call->capturing = false;
    ret_call->recorded = spw_record_active();
}

/* Fills in a call that frees the block at `address` on a stream, in the order of that stream. */
static inline void spw_call_of_block_on(struct spw_call *ret_call, CUdeviceptr address,
                                        CUstream handle, bool per_thread)
{
    const struct spw_stream_info *info;

    spw_call_of_block(ret_call, address);
    if (SPW_LIKELY(ret_call->device != NULL)) {
        info = spw_program_stream_get(handle, per_thread);
        if (SPW_LIKELY(info != NULL)) {
            spw_call_enter_stream(ret_call, info);
        }
    }
}

/* Gives a call on an unknown stream the current device. Returns false if no device is current. */
bool spw_call_take_context(struct spw_call *call);

/* ---- the request ---- */

/* The slow path of the next function. */
bool spw_call_is_for_other_pool(struct spw_call *call, CUmemoryPool named);

/* Returns true if the request is for a memory pool that spillway serves. `named` is the driver's
 * pool that the request names; NULL: the current pool of the device. call->device must be set
 * before. On return, it is the device of the pool. */
static inline bool spw_call_is_for_pool(struct spw_call *call, CUmemoryPool named)
{
    return SPW_LIKELY(named == NULL &&
                      atomic_load_explicit(&call->device->current_pool, memory_order_relaxed) ==
                          NULL &&
                      spw_device_default_pool(call->device) != NULL) ||
           spw_call_is_for_other_pool(call, named);
}

/* Prepares a request for the pool: waits while a pause holds allocations, opens the pool, and finds
 * the caller. Returns false if there is no pool. The size and the name of the driver's function
 * must already be set in call->asked. */
static inline bool spw_call_ask(struct spw_call *call)
{
    call->caller = spw_process_caller();
    if (SPW_UNLIKELY(call->caller == SPW_CALLER_PYTORCH)) {
        spw_process_ops.look();
    }
    spw_migrate_barrier_pass();
    call->pool = spw_device_pool(call->device);
    if (SPW_UNLIKELY(call->pool == NULL)) {
        return false;
    }
    call->asked.site = spw_call_site(call->asked.api);
    call->recorded = spw_record_active();
    if (spw_process_is_unusual()) {
        call->observed = spw_process_settings()->mode == SPW_MODE_OBSERVE;
        call->ruled = atomic_load(&spw_policy_state.policy) != NULL;
    }
    return true;
}

/* Returns the name of the function that the program called. If the call came through the runtime,
 * this is the runtime's function. */
const char *spw_call_api(const struct spw_call *call);

/* ---- the answer ---- */

/* Returns the host tier, if it must be notified of new and freed blocks. Returns NULL if there is
 * no tier, or if memory was never short. */
static inline struct spw_migrate *spw_call_tier(const struct spw_call *call)
{
    return SPW_UNLIKELY(spw_submit_arguments_wanted()) ? atomic_load(&call->device->tier) : NULL;
}

/* With SPILLWAY_CHECK, checks the pool after a change. */
static inline void spw_call_check(const struct spw_call *call)
{
    if (spw_process_is_unusual() && spw_process_settings()->check) {
        spw_device_check(call->device, call->pool);
    }
}
