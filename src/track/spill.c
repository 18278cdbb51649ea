#include "track/spill.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "track/device.h"
#include "callsite/capture.h"
#include "callsite/top_sites.h"
#include "migrate/migrate.h"

/* The file name of the library that made the call of the runtime under way; NULL: not known. */
static const char *caller_library(void)
{
    const char *slash;
    Dl_info info;

    if (spw_track_call.fn == SPW_FN_COUNT || dladdr(spw_track_call.caller, &info) == 0 ||
        info.dli_fname == NULL) {
        return NULL;
    }
    slash = strrchr(info.dli_fname, '/');
    return slash == NULL ? info.dli_fname : slash + 1;
}

bool spw_track_spill_asks_again(const struct spw_device *device, uint64_t bytes)
{
    static _Thread_local uint64_t refused_bytes __attribute__((tls_model("initial-exec")));
    static _Thread_local uint64_t refused_allocs __attribute__((tls_model("initial-exec")));
    const char *library = spw_track_call.fn == SPW_FN_cudaMalloc ? caller_library() : NULL;
    uint64_t allocs = spw_counter_get(&device->counters->allocs);

    if (library == NULL || strncmp(library, "libc10_cuda.so", 14) != 0 ||
        atomic_load(&spw_track_driver()->captures_open) > 0) {
        return false;
    }
    if (refused_bytes != 0 && (bytes == refused_bytes || allocs == refused_allocs)) {
        refused_bytes = 0;
        return false;
    }
    refused_bytes = bytes;
    refused_allocs = allocs;
    return true;
}

/* Who made the call that is under way: its line, or else the library it came from, and the API. */
static void describe(uint32_t site, char *text, size_t capacity)
{
    const struct spw_callsite *known = spw_callsite_table_get(spw_callsite_known(), site);
    const char *api =
        spw_track_call.fn != SPW_FN_COUNT ? spw_driver_symbol(spw_track_call.fn) : "driver API";
    const char *library = caller_library();
    char label[SPW_CALLSITE_LABEL];

    if (known != NULL) {
        spw_callsite_label_of(site, label, sizeof(label));
        (void)snprintf(text, capacity, "%s, %s", label, known->api);
    } else {
        (void)snprintf(text, capacity, "%s%s%s", api, library != NULL ? ", " : "",
                       library != NULL ? library : "");
    }
}

/* While a capture is open nothing is moved. */
static bool may_move(void)
{
    return atomic_load(&spw_track_driver()->captures_open) == 0;
}

bool spw_track_spill_away(struct spw_device *device)
{
    return device->tier != NULL && may_move() && spw_migrate_evict_some(device->tier);
}

bool spw_track_spill_yield(struct spw_device *device, struct spw_pool *pool)
{
    return spw_track_spill_away(device) && spw_pool_trim(pool, 0) > 0;
}

enum spw_err spw_track_spill_charge(struct spw_device *device, uint64_t bytes, uint32_t site,
                                    enum spw_err refused, int *ret_node)
{
    const struct spw_migrate_request request = {.bytes = bytes, .site = site, .describe = describe};
    struct spw_pool *pool = spw_track_device_opened(device);

    if (pool == NULL || device->tier == NULL || !spw_migrate_can_map_host(device->tier) ||
        spw_pool_charge_host_for(pool, bytes, site) != SPW_OK) {
        return refused;
    }
    spw_migrate_announce(device->tier, &request, bytes, /* moved */ false);
    *ret_node = spw_seam.host_node(device->vm);
    return SPW_OK;
}

bool spw_track_spill_follows(const struct spw_device *device)
{
    return device->tier != NULL && may_move() && spw_migrate_wants_stream(device->tier);
}

void spw_track_spill_expect(struct spw_device *device, const uint64_t *addresses, size_t count,
                            const struct spw_stream *stream)
{
    if (device->tier != NULL) {
        spw_migrate_before_submit(device->tier, addresses, count, stream,
                                  may_move() && !atomic_load(&spw_process.leaving));
    }
}

void spw_track_spill_use(struct spw_device *device, const uint64_t *addresses, size_t count,
                         bool kernel)
{
    if (device->tier != NULL) {
        spw_migrate_record(device->tier, addresses, count, kernel);
    }
}

void spw_track_spill_use_among(struct spw_device *device, const uint64_t *addresses, size_t count)
{
    if (device->tier != NULL) {
        spw_migrate_record_partial(device->tier, addresses, count);
    }
}

void spw_track_spill_meet_kernel(struct spw_device *device)
{
    if (device->tier != NULL) {
        spw_migrate_record_new_kernel(device->tier);
    }
}

bool spw_track_spill_has_room(struct spw_device *device)
{
    return device->tier != NULL && spw_migrate_has_room(device->tier);
}

void spw_track_spill_prepare(struct spw_device *device)
{
    if (device->tier != NULL && may_move()) {
        spw_migrate_prepare(device->tier);
    }
}

void spw_track_spill_rest(struct spw_device *device)
{
    if (device->tier != NULL && spw_counter_get(&device->counters->host_used_bytes) > 0 &&
        may_move() && !atomic_load(&spw_process.leaving)) {
        spw_migrate_idle(device->tier);
        if (SPW_UNLIKELY(spw_process.check)) {
            spw_track_device_check(device, spw_track_device_opened(device));
        }
    }
}

enum spw_err spw_track_spill_alloc(const struct spw_request *request,
                                   const struct spw_pool_placement *wish, enum spw_err refused,
                                   uint64_t *ret_address)
{
    struct spw_migrate *tier = request->device->tier;
    const struct spw_migrate_request asked = {.bytes = request->bytes,
                                              .stream = request->stream,
                                              .context = request->context,
                                              .site = request->site,
                                              .wish = wish,
                                              .err = refused,
                                              .may_move = may_move(),
                                              .describe = describe};

    if (tier == NULL) {
        return refused;
    }
    return spw_track_spill_asks_again(request->device, request->bytes)
               ? SPW_E_AGAIN
               : spw_migrate_alloc(tier, &asked, ret_address);
}
