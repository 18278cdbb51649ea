#include "serve/account.h"

#include "common/host_bound.h"
#include "common/minmax.h"
#include "common/size.h"
#include "device/device.h"
#include "device/one_memory.h"
#include "device/spill.h"
#include "driver/host_memory.h"
#include "record/record.h"
#include "serve/oom.h"
#include "serve/page_locked.h"
#include "stats/file.h"
#include "system/log.h"
#include "system/uncancelled.h"

#include <inttypes.h>
#include <stdio.h>

/* Adds an entry to the counter of its kind, or with `up` false subtracts it. */
static void move(const struct spw_ledger_entry *entry, bool up)
{
    struct spw_device *device = spw_device_at(entry->ordinal);
    struct spw_counters *counters = device->counters;
    uint64_t delta = up ? entry->bytes : -entry->bytes;

    if (entry->kind == SPW_LEDGER_PINNED) {
        spw_serve_page_locked(device, entry->site, (int64_t)delta);
        return;
    }
    spw_counter_add(&counters->passed_bytes, delta);
    if (entry->kind == SPW_LEDGER_CHARGED) {
        spw_counter_add(&counters->charged_bytes, delta);
    }
}

static void record(CUdeviceptr address, const struct spw_ledger_entry *entry)
{
    if (spw_record_active()) {
        spw_record_alloc(&(struct spw_record_alloc){
            .device = entry->ordinal,
            .address = address,
            .bytes = entry->bytes,
            .site = entry->site,
            .source = entry->kind == SPW_LEDGER_PINNED ? SPW_RECORD_PINNED : SPW_RECORD_PASSED,
            .charged = entry->kind == SPW_LEDGER_CHARGED,
        });
    }
}

/* Accounts for the end of an allocation that was removed from the ledger. */
static void left_ledger(uint64_t address, const struct spw_ledger_entry *entry)
{
    struct spw_pool *pool;

    move(entry, false);
    if (spw_record_active()) {
        spw_record_free(entry->ordinal, 0, address);
    }
    pool = spw_device_opened(spw_device_at(entry->ordinal));
    if (entry->kind == SPW_LEDGER_CHARGED && pool != NULL) {
        spw_pool_discharge(pool, entry->bytes, entry->site);
    }
}

/* Removes an allocation from the ledger before the real driver frees it. The address may get a new
 * owner, which must not be confused with the old one. Returns false if the allocation was never
 * entered. */
static bool enter_free(CUdeviceptr address, struct spw_ledger_entry *ret_entry)
{
    if (!spw_program_ledger_remove(address, ret_entry)) {
        return false;
    }
    left_ledger(address, ret_entry);
    return true;
}

/* Accounts for an allocation that ends with a context. Page-locked memory no longer counts as
 * memory that holds addresses. */
static void ended(uint64_t address, const struct spw_ledger_entry *entry)
{
    struct spw_span span;

    if (entry->kind == SPW_LEDGER_PINNED) {
        (void)spw_submit_indirect_unmapped(address, &span);
    }
    left_ledger(address, entry);
}

void spw_serve_account_end_context(CUcontext context)
{
    spw_program_ledger_end_context(context, ended);
}

/* Enters the allocation again, because its free failed. */
static void undo_free(CUdeviceptr address, const struct spw_ledger_entry *entry)
{
    struct spw_pool *pool = spw_device_opened(spw_device_at(entry->ordinal));

    if (entry->kind == SPW_LEDGER_CHARGED && pool != NULL) {
        (void)spw_pool_charge(pool, entry->bytes, entry->site, /* beyond */ true);
    }
    move(entry, true);
    record(address, entry);
    spw_program_ledger_add(address, entry);
}

void spw_serve_account_free_begin(CUdeviceptr address, struct spw_passed_free *ret_free)
{
    ret_free->address = address;
    ret_free->mapped = spw_submit_indirect_unmapped(address, &ret_free->span);
    ret_free->entered = enter_free(address, &ret_free->entry);
}

CUresult spw_serve_account_free_end(const struct spw_passed_free *free, CUresult result)
{
    if (free->entered && result != CUDA_SUCCESS) {
        undo_free(free->address, &free->entry);
    }
    if (free->mapped && result != CUDA_SUCCESS) {
        spw_submit_indirect_mapped(free->span.begin, free->span.end - free->span.begin);
    }
    return result;
}

void spw_serve_account_allocated(CUdeviceptr address, const struct spw_ledger_entry *entry)
{
    struct spw_ledger_entry stale;

    /* A graph may allocate memory at the same address again, without a call that has freed it. */
    (void)enter_free(address, &stale);
    move(entry, true);
    record(address, entry);
    spw_program_ledger_add(address, entry);
    if (entry->kind != SPW_LEDGER_PINNED) {
        struct spw_device *device = spw_device_at(entry->ordinal);

        spw_counter_add(&device->counters->passed_allocs, 1);
        spw_stats_grant(device->refusal, entry->bytes);
    }
}

/* Returns the most memory that the device could have. If it was full before its limit was reached,
 * this is less than the limit. Others may have taken of a memory that device and host share. */
static uint64_t most_of(const struct spw_device *device, const struct spw_pool_usage *usage,
                        enum spw_err err)
{
    uint64_t room = spw_device_one_memory_room(device);

    if (room != UINT64_MAX) {
        return spw_min(usage->limit, usage->committed + room);
    }
    return err == SPW_E_LIMIT ? usage->limit : usage->committed;
}

/* Returns by how many bytes a request exceeded the limits of device and host together. Returns 0 if
 * enough memory was free, but in pieces that could not be joined. */
static uint64_t missing(const struct spw_device *device, const struct spw_pool_usage *usage,
                        uint64_t bytes, enum spw_err err)
{
    uint64_t most = most_of(device, usage, err) + usage->host_limit;
    uint64_t room = most > usage->live ? most - usage->live : 0;
    uint64_t wanted = bytes < UINT64_MAX - 511 ? spw_serve_account_round(bytes) : bytes;

    if (err == SPW_E_RANGE) {
        return wanted; /* the amount of free memory does not matter */
    }
    return wanted > room ? wanted - room : 0;
}

static void note_refusal(const struct spw_oom *oom)
{
    const struct spw_device *device = oom->device;
    const struct spw_counters *counters = device->counters;
    uint64_t number = spw_counter_get(&counters->allocs) +
                      spw_counter_get(&counters->passed_allocs) +
                      spw_counter_get(&counters->vmm_creates) + spw_counter_get(&counters->ooms);

    spw_stats_refuse(device->refusal, oom->api, number, oom->bytes, oom->missing_bytes);
}

/* Describes the use of the host tier, and the memory that is left on the machine. Without a tier,
 * writes "", or says why there is none. */
static void describe_host(const struct spw_device *device, const struct spw_pool_usage *usage,
                          char *text, size_t capacity)
{
    char used[SPW_SIZE_TEXT], most[SPW_SIZE_TEXT], free[SPW_SIZE_TEXT], group[SPW_SIZE_TEXT];
    struct spw_host_memory memory;
    int length;

    (void)snprintf(text, capacity, "%s",
                   device->one_memory.is_one ? "; device and host share one memory" : "");
    if (usage->host_limit == 0) {
        return;
    }
    length = snprintf(text, capacity, "; host memory %s of %s (%s sets the limit)",
                      spw_size_text(usage->host, used), spw_size_text(usage->host_limit, most),
                      spw_host_bound_text(spw_counter_get(&device->counters->host_bound)));
    if (spw_process_driver()->simulated != NULL) {
        return; /* the machine is simulated as well, and its memory is the limit */
    }
    spw_driver_host_memory(/* simulated */ false, &memory);
    length += snprintf(text + length, capacity - (size_t)length, ", the machine has %s available",
                       spw_size_text(memory.available, free));
    if (memory.limited && length > 0 && (size_t)length < capacity) {
        (void)snprintf(text + length, capacity - (size_t)length, ", its control group %s of %s",
                       spw_size_text(memory.group_leaves, free),
                       spw_size_text(memory.group_limit, group));
    }
}

enum { REPORTED_EACH = 16 };

/* Returns true if a refusal must be reported: each of the first ones, and then the 32nd, the 64th,
 * the 128th and so on. A program that continues to ask therefore does not fill its log. */
static bool is_reported(uint64_t refusals)
{
    return refusals <= REPORTED_EACH || (refusals & (refusals - 1)) == 0;
}

static void tell(const struct spw_oom *oom, const struct spw_pool_usage *usage, enum spw_err err,
                 uint64_t refusals)
{
    char asked[SPW_SIZE_TEXT], live[SPW_SIZE_TEXT], committed[SPW_SIZE_TEXT], limit[SPW_SIZE_TEXT];
    char host[256], so_far[64] = "";

    describe_host(oom->device, usage, host, sizeof(host));
    if (refusals > REPORTED_EACH) {
        (void)snprintf(so_far, sizeof(so_far), "; %" PRIu64 " requests refused so far", refusals);
    }
    spw_log_always(
        "out of memory on device %d: requested %s, live %s, committed %s, limit %s (%s)%s%s",
        oom->device->ordinal, spw_size_text(oom->bytes, asked), spw_size_text(usage->live, live),
        spw_size_text(usage->committed, committed), spw_size_text(usage->limit, limit),
        spw_err_name(err), host, so_far);
}

/* Accounts for a refusal, and sets oom->missing_bytes. */
static void refuse(struct spw_oom *oom, enum spw_err err)
{
    SPW_UNCANCELLED;
    struct spw_pool_usage usage;
    uint64_t refusals;
    bool new_site;

    spw_pool_usage(oom->pool, &usage);
    spw_counter_add(&oom->device->counters->ooms, 1);
    refusals = spw_counter_get(&oom->device->counters->ooms);
    oom->missing_bytes = missing(oom->device, &usage, oom->bytes, err);
    note_refusal(oom);
    if (spw_record_active()) {
        spw_record_oom(&(struct spw_record_oom){
            .device = oom->device->ordinal,
            .bytes = oom->bytes,
            .missing_bytes = oom->missing_bytes,
            .site = oom->site,
            .live_bytes = usage.live,
            .committed_bytes = usage.committed,
            .limit_bytes = usage.limit,
        });
    }
    new_site = spw_serve_oom_is_new(oom);
    if (new_site || is_reported(refusals)) {
        tell(oom, &usage, err, refusals);
        if (new_site) {
            spw_serve_oom_report(oom);
        }
        (void)spw_stats_write(spw_process_stats());
    }
}

CUresult spw_serve_account_oom(struct spw_device *device, struct spw_pool *pool, const char *api,
                               uint64_t bytes, uint32_t site, enum spw_err err)
{
    struct spw_oom oom = {
        .device = device,
        .pool = pool,
        .api = spw_process_outer.fn != SPW_FN_COUNT ? spw_driver_symbol(spw_process_outer.fn) : api,
        .bytes = bytes,
        .site = site,
        .ruleless = err == SPW_E_RANGE,
        .overcome = device->tier == NULL && spw_device_asks_again(device, bytes),
    };

    refuse(&oom, err);
    return CUDA_ERROR_OUT_OF_MEMORY;
}

void spw_serve_account_given_up(void)
{
    struct spw_device_postponed given_up;
    struct spw_pool *pool;

    if (SPW_LIKELY(!spw_device_gave_up(&given_up))) {
        return;
    }
    pool = spw_device_opened(given_up.device);
    if (pool != NULL) {
        refuse(&(struct spw_oom){.device = given_up.device,
                                 .pool = pool,
                                 .api = "cudaMalloc",
                                 .bytes = given_up.bytes,
                                 .site = given_up.site},
               given_up.refused);
    }
}
