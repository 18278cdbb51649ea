#include "serve/direct.h"

#include "call/arrival.h"
#include "device/spill.h"
#include "program/state.h"
#include "program/stream.h"
#include "serve/handlers.h"
#include "serve/take.h"

static enum spw_err result_of(enum spw_serve_outcome outcome)
{
    switch (outcome) {
    case SPW_SERVE_TAKEN:
        return SPW_OK;
    case SPW_SERVE_REFUSED:
        return SPW_E_NO_MEMORY;
    default:
        return SPW_E_UNSUPPORTED;
    }
}

static enum spw_err alloc(const struct spw_serve_request *request, uint64_t *ret_address,
                          struct spw_serve_order *ret_order)
{
    uint64_t generation =
        atomic_load_explicit(&spw_program.streams.generation, memory_order_acquire);
    struct spw_call call;
    CUdeviceptr address;
    enum spw_err err;

    spw_call_on_stream(&call, request->stream, /* per_thread */ false);
    if (call.device == NULL || call.device->ordinal != request->device) {
        return SPW_E_AGAIN;
    }
    *ret_order = (struct spw_serve_order){*call.asked.stream, generation};
    call.asked.stream = &ret_order->stream;
    call.asked.bytes = request->bytes;
    call.asked.api = request->api;
    call.repeated = true;
    err = result_of(spw_serve_take(&call, &address));
    if (SPW_LIKELY(err == SPW_OK)) {
        *ret_address = address;
    }
    return err;
}

enum spw_err spw_serve_direct_alloc(const struct spw_serve_request *request, uint64_t *ret_address,
                                    struct spw_serve_order *ret_order)
{
    enum spw_err err;

    if (!spw_call_begin(request->caller)) {
        return SPW_E_UNSUPPORTED;
    }
    err = alloc(request, ret_address, ret_order);
    spw_call_end();
    return err;
}

/* Returns the stream as it is now. Returns NULL if the device no longer has the stream, or if its
 * handle means another stream on this thread. If the generation is unchanged, no stream was
 * removed, so none has ended. */
static const struct spw_stream *present(int device, const struct spw_serve_order *order)
{
    const struct spw_stream_info *info;

    if (SPW_UNLIKELY(order->stream.thread_bound)) {
        return NULL;
    }
    if (SPW_LIKELY(order->generation ==
                   atomic_load_explicit(&spw_program.streams.generation, memory_order_acquire))) {
        return &order->stream;
    }
    info = spw_program_stream_get(order->stream.handle, false);
    return info != NULL && info->ordinal == device && info->stream.id == order->stream.id
               ? &info->stream
               : NULL;
}

/* Begins a lease and returns the pool of a device. If there is no pool, returns NULL and begins no
 * lease. */
static struct spw_pool *enter(int device)
{
    struct spw_pool *pool;

    if (!spw_process_serves()) {
        return NULL;
    }
    spw_device_lease_enter();
    pool = spw_device_opened(spw_device_at(device));
    if (pool == NULL) {
        spw_device_lease_leave();
    }
    return pool;
}

void spw_serve_direct_free(int device, const struct spw_serve_order *order, uint64_t address)
{
    struct spw_pool *pool = enter(device);

    if (pool != NULL) {
        (void)spw_serve_free_block(
            &(struct spw_call){.device = spw_device_at(device),
                               .pool = pool,
                               .recorded = spw_record_active(),
                               .asked.stream = order != NULL ? present(device, order) : NULL},
            address);
        spw_device_lease_leave();
    }
}

void spw_serve_direct_trim(void)
{
    for (int i = 0; i < spw_device_count(); i++) {
        if (enter(i) != NULL) {
            spw_device_trim(spw_device_at(i), 0);
            spw_device_lease_leave();
        }
    }
}

void spw_serve_direct_reset_peak(int device)
{
    struct spw_pool *pool = enter(device);

    if (pool != NULL) {
        spw_pool_reset_reserved_peak(pool);
        spw_device_lease_leave();
    }
}

void spw_serve_direct_each_free(int device,
                                void (*visit)(uint64_t address, uint64_t bytes, void *context),
                                void *context)
{
    struct spw_pool *pool = enter(device);

    if (pool != NULL) {
        spw_pool_each_free(pool, visit, context);
        spw_device_lease_leave();
    }
}

bool spw_serve_direct_share(int device, uint64_t address, CUipcMemHandle *ret_handle)
{
    CUresult result = CUDA_ERROR_INVALID_VALUE;

    if (enter(device) != NULL) {
        result = spw_serve_cuIpcGetMemHandle(ret_handle, address);
        spw_device_lease_leave();
    }
    return result == CUDA_SUCCESS;
}

static bool has_room(const struct spw_counters *counters, uint64_t bytes)
{
    uint64_t live = spw_counter_get(&counters->live_bytes);
    uint64_t host = spw_counter_get(&counters->host_used_bytes);
    uint64_t on_device = live > host ? live - host : 0;

    return on_device + bytes <= spw_counter_get(&counters->limit_bytes);
}

void spw_serve_direct_make_room(int device, uint64_t bytes)
{
    enum { MOVES_MOST = 64 };
    struct spw_device *place = spw_device_at(device);
    bool moved = true;

    if (enter(device) == NULL) {
        return;
    }
    for (int i = 0; i < MOVES_MOST && moved && !has_room(place->counters, bytes); i++) {
        moved = spw_device_evict(place);
    }
    spw_device_lease_leave();
}
