/* The public interface of include/spillway.h. */
#include "spillway.h"

#include "callsite/tag.h"
#include "common/options.h"
#include "device/device.h"
#include "device/lease.h"
#include "device/spill.h"
#include "driver/driver.h"
#include "migrate/move/barrier.h"
#include "policy/decision.h"
#include "pool/pool.h"
#include "process/process.h"
#include "record/record.h"
#include "serve/state.h"
#include "service/pause.h"
#include "stats/output.h"
#include "stats/stats.h"
#include "system/start.h"

#include <stdint.h>
#include <string.h>

static bool is_running(void)
{
    return spw_process_is_running();
}

/* Returns the device with an ordinal; NULL if there is none, or while CUDA is not in use. */
static struct spw_device *device_at(int ordinal)
{
    if (!is_running() || ordinal < 0 || ordinal >= spw_device_count()) {
        return NULL;
    }
    return spw_device_at(ordinal);
}

SPW_EXPORT int spillway_version(void)
{
    return SPILLWAY_VERSION_MAJOR * 1000 + SPILLWAY_VERSION_MINOR;
}

SPW_EXPORT int spillway_stats(int ordinal, struct spillway_stats *stats)
{
    const struct spw_device *device = device_at(ordinal);
    struct spillway_stats now;

    if (device == NULL) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    if (stats == NULL || stats->size < sizeof(stats->size)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    now = (struct spillway_stats){
        .size = stats->size < sizeof(now) ? stats->size : sizeof(now),
        .limit_bytes = spw_counter_get(&device->counters->limit_bytes),
        .live_bytes = spw_counter_get(&device->counters->live_bytes),
        .live_peak_bytes = spw_counter_get(&device->counters->live_peak_bytes),
        .committed_bytes = spw_counter_get(&device->counters->committed_bytes),
        .committed_peak_bytes = spw_counter_get(&device->counters->committed_peak_bytes),
        .host_bytes = spw_counter_get(&device->counters->host_bytes),
        .allocs = spw_counter_get(&device->counters->allocs),
        .frees = spw_counter_get(&device->counters->frees),
        .steals = spw_counter_get(&device->counters->steals),
        .ooms = spw_counter_get(&device->counters->ooms),
    };
    memcpy(stats, &now, now.size);
    return CUDA_SUCCESS;
}

static const char *const counter_names[SPW_COUNTER_COUNT] = {
#define SPW_COUNTER(name, kind, help) #name,
#include "common/counters.def"
#undef SPW_COUNTER
};

SPW_EXPORT const char *spillway_counter_name(size_t number)
{
    if (number < SPW_COUNTER_COUNT) {
        return counter_names[number];
    }
    number -= SPW_COUNTER_COUNT;
    return number < SPW_CALL_COUNT ? spw_driver_call_name((enum spw_own_call)number) : NULL;
}

SPW_EXPORT int spillway_counters(int ordinal, uint64_t *values, size_t count)
{
    const struct spw_device *device = device_at(ordinal);
    size_t number = 0;

    if (device == NULL) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    if (values == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    memset(values, 0, count * sizeof(*values));
#define SPW_COUNTER(name, kind, help)                                                              \
    if (number < count) {                                                                          \
        values[number++] = spw_counter_get(&device->counters->name);                               \
    }
#include "common/counters.def"
#undef SPW_COUNTER
    for (size_t i = 0; i < SPW_CALL_COUNT && number < count; i++) {
        values[number++] = spw_counter_get(&spw_process_stats()->devices[ordinal].driver_calls[i]);
    }
    return CUDA_SUCCESS;
}

SPW_EXPORT int spillway_trim(int ordinal, size_t keep_bytes)
{
    struct spw_device *device = device_at(ordinal);
    struct spw_pool *pool;

    if (device == NULL) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    spw_device_lease_enter();
    pool = spw_device_opened(device);
    if (pool != NULL) {
        spw_device_settle(device);
        (void)spw_pool_trim(pool, keep_bytes);
    }
    spw_device_lease_leave();
    return CUDA_SUCCESS;
}

static void find_own_path(void)
{
    if (!spw_start_object((const void *)(uintptr_t)find_own_path, spw_serve.object.path)) {
        spw_serve.object.path[0] = '\0';
    }
}

SPW_EXPORT const char *spillway_about(const char *name)
{
    const struct spw_stats *stats = spw_process_stats();

    if (name != NULL && strcmp(name, "object") == 0) {
        (void)pthread_once(&spw_serve.object.once, find_own_path);
        return spw_serve.object.path;
    }
    if (name == NULL || !is_running() || stats == NULL) {
        return NULL;
    }
    if (strcmp(name, "mode") == 0) {
        return stats->mode;
    }
    if (strcmp(name, "policy") == 0) {
        return stats->policy;
    }
    if (strcmp(name, "statistics") == 0) {
        return spw_stats_output_path(SPW_STATS_FILE);
    }
    return strcmp(name, "recording") == 0 ? spw_stats_output_path(SPW_STATS_RECORDING) : NULL;
}

static CUresult mark(const char *name, bool begin)
{
    if (name == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (!is_running()) {
        return CUDA_ERROR_NOT_INITIALIZED;
    }
    if (spw_record_active()) {
        spw_record_mark(name, begin);
    }
    return CUDA_SUCCESS;
}

SPW_EXPORT int spillway_mark_begin(const char *name)
{
    return mark(name, true);
}

SPW_EXPORT int spillway_mark_end(const char *name)
{
    return mark(name, false);
}

SPW_EXPORT int spillway_mark_step(void)
{
    spw_policy_decision_mark_step(); /* the first step may begin before CUDA is in use */
    if (!is_running()) {
        return CUDA_ERROR_NOT_INITIALIZED;
    }
    if (spw_record_active()) {
        spw_record_step();
    }
    spw_device_lease_enter();
    for (int i = 0; i < spw_device_count(); i++) {
        struct spw_migrate *tier = atomic_load(&spw_device_at(i)->tier);

        if (tier != NULL) {
            spw_migrate_mark_step(tier);
        }
    }
    spw_device_lease_leave();
    return CUDA_SUCCESS;
}

static CUresult treat(const void *address, size_t bytes,
                      const struct spw_block_attributes *treatment)
{
    CUdeviceptr from = (CUdeviceptr)(uintptr_t)address;
    struct spw_pool *pool;
    bool done;

    if (!is_running()) {
        return CUDA_ERROR_NOT_INITIALIZED;
    }
    spw_device_lease_enter();
    done = spw_device_owner(from, &pool) != NULL &&
           spw_pool_set_attributes(pool, from, bytes, treatment) != 0;
    spw_device_lease_leave();
    return done ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

SPW_EXPORT int spillway_pin(const void *address, size_t bytes, int on)
{
    static const struct spw_block_attributes fix = {.fix = SPW_FIXED_BY_PROGRAM};
    static const struct spw_block_attributes unfix = {.unfix = SPW_FIXED_BY_PROGRAM};

    return treat(address, bytes, on != 0 ? &fix : &unfix);
}

SPW_EXPORT int spillway_priority(const void *address, size_t bytes, int priority)
{
    const struct spw_block_attributes treatment = {.prioritize = true, .priority = priority};

    return treat(address, bytes, &treatment);
}

/* ---- pauses ---- */

static const uint64_t pause_wait_ns = UINT64_C(30000000000);

static CUresult pause(enum spw_control_part kind, const char *name)
{
    const struct spw_pause_request request = {.part = {kind, name}, .wait_ns = pause_wait_ns};

    if (!is_running()) {
        return CUDA_ERROR_NOT_INITIALIZED;
    }
    spw_migrate_barrier_await_end(); /* waits while another process pauses this process */
    switch (spw_service_pause_begin(&request).outcome) {
    case SPW_CONTROL_DONE:
    case SPW_CONTROL_UNUSED:
        return CUDA_SUCCESS;
    case SPW_CONTROL_NO_PART:
        return CUDA_ERROR_INVALID_VALUE;
    case SPW_CONTROL_IMPOSSIBLE:
        return CUDA_ERROR_NOT_SUPPORTED;
    default:
        return CUDA_ERROR_NOT_READY;
    }
}

static CUresult resume(enum spw_control_part kind, const char *name)
{
    const struct spw_part part = {kind, name};

    if (!is_running()) {
        return CUDA_ERROR_NOT_INITIALIZED;
    }
    spw_migrate_barrier_await_end();
    return spw_service_pause_end(&part, pause_wait_ns, /* held */ false).outcome ==
                   SPW_CONTROL_NO_PART
               ? CUDA_ERROR_INVALID_VALUE
               : CUDA_SUCCESS;
}

SPW_EXPORT int spillway_pause(void)
{
    return pause(SPW_CONTROL_PART_ALL, NULL);
}

SPW_EXPORT int spillway_pause_rule(const char *name)
{
    return pause(SPW_CONTROL_PART_RULE, name);
}

SPW_EXPORT int spillway_pause_tag(const char *name)
{
    return pause(SPW_CONTROL_PART_TAG, name);
}

SPW_EXPORT int spillway_resume(void)
{
    return resume(SPW_CONTROL_PART_ALL, NULL);
}

SPW_EXPORT int spillway_resume_rule(const char *name)
{
    return resume(SPW_CONTROL_PART_RULE, name);
}

SPW_EXPORT int spillway_resume_tag(const char *name)
{
    return resume(SPW_CONTROL_PART_TAG, name);
}

/* ---- tags ---- */

SPW_EXPORT int spillway_tag(const char *name)
{
    if (!spw_callsite_tag_set(name)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    return spw_option_get(SPW_OPT_SPILLWAY_SITES, NULL, 0).word != SPW_SITES_OFF
               ? CUDA_SUCCESS
               : CUDA_ERROR_NOT_SUPPORTED;
}
