#include "serve/oom.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "callsite/capture.h"
#include "callsite/top_sites.h"
#include "common/size.h"
#include "device/host_budget.h"
#include "device/one_memory.h"
#include "serve/state.h"
#include "service/nvml.h"
#include "system/log.h"
#include "system/pid.h"
#include "system/room.h"

static_assert((int)SPW_STATS_HOLDERS == (int)SPW_CALLSITE_HOLDERS, "as many in the statistics");
static_assert((int)SPW_STATS_LABEL == (int)SPW_CALLSITE_LABEL, "as long in the statistics");
static_assert((int)SPW_STATS_ADVICE == (int)SPW_CALLSITE_RULE, "as long in the statistics");

/* ---- gathering ---- */

/* Asks the driver for the device's memory, unless the context of another device is current. */
static void ask_device(const struct spw_device *device, struct spw_stats_oom *report)
{
    struct spw_driver *driver = spw_process_driver();
    size_t total = 0, free = 0;
    CUdevice current;

    if (SPW_DRIVER_CALL(driver, device->ordinal, cuCtxGetDevice, &current) == CUDA_SUCCESS &&
        current == device->handle &&
        SPW_DRIVER_CALL(driver, device->ordinal, cuMemGetInfo_v2, &free, &total) == CUDA_SUCCESS) {
        report->total_bytes = total;
        report->free_bytes = free;
    }
}

static void ask_pool(struct spw_pool *pool, struct spw_stats_oom *report)
{
    struct spw_pool_usage usage;

    spw_pool_usage(pool, &usage);
    report->limit_bytes = usage.limit;
    report->live_bytes = usage.live;
    report->committed_bytes = usage.committed;
    report->spare_bytes = usage.spare;
    report->largest_free_bytes = usage.largest_free;
    report->host_bytes = usage.host;
    report->host_limit_bytes = usage.host_limit;
}

/* On a simulated machine, only locked memory counts as used. */
static void ask_host(const struct spw_device *device, struct spw_stats_oom *report)
{
    uint64_t taken = report->host_bytes + spw_counter_get(&device->counters->pinned_bytes);
    struct spw_host_memory memory;

    report->host_bound = spw_counter_get(&device->counters->host_bound);
    spw_device_host_memory(&memory);
    if (spw_process_driver()->simulated != NULL) {
        memory.available -= taken < memory.available ? taken : memory.available;
    }
    report->host_total_bytes = memory.limited ? memory.group_limit : memory.total;
    report->host_available_bytes = memory.limited && memory.group_leaves < memory.available
                                       ? memory.group_leaves
                                       : memory.available;
}

/* Returns the bytes of the driver's allocations that are not committed bytes. */
static uint64_t passed_bytes(const struct spw_device *device)
{
    return spw_counter_get(&device->counters->passed_bytes) -
           spw_counter_get(&device->counters->charged_bytes);
}

/* If device and host share one memory, its figures replace the driver's, which leave out what
 * caches of files could give up. */
static void ask_one_memory(const struct spw_device *device, struct spw_stats_oom *report)
{
    const struct spw_one_memory *one = &device->one_memory;

    report->one_memory = one->is_one;
    report->reserve_bytes = one->reserve_bytes;
    report->process_host_bytes = spw_pid_anonymous_bytes();
    report->pinned_bytes = spw_counter_get(&device->counters->pinned_bytes);
    report->passed_bytes = passed_bytes(device);
    if (one->is_one) {
        report->total_bytes = one->total_bytes;
        report->free_bytes = spw_device_one_memory_room(device);
    }
}

static void ask_others(const struct spw_device *device, struct spw_stats_oom *report)
{
    uint64_t ours = report->committed_bytes + passed_bytes(device);
    struct spw_nvml_usage usage;

    report->usage_known = spw_service_nvml_ask_own(device, &usage);
    if (report->usage_known) {
        report->own_other_bytes = usage.own > ours ? usage.own - ours : 0;
        report->other_process_bytes = usage.others;
    }
}

static void ask_sites(const struct spw_oom *oom, struct spw_stats_oom *report)
{
    const struct spw_device *device = oom->device;
    struct spw_callsite_holding SPW_ROOM *holding = spw_room_take(sizeof(*holding));

    if (holding == NULL) {
        report->holding_sites = 0;
        report->holder_count = 0;
        report->rule[0] = '\0';
        report->rule_bytes = 0;
        return;
    }
    if (device->charges != NULL) {
        spw_callsite_holding(device->charges,
                             report->missing_bytes > 0 ? report->missing_bytes : report->bytes,
                             holding);
    }
    report->holding_sites = holding->sites;
    report->holder_count = holding->count;
    for (int i = 0; i < holding->count; i++) {
        const struct spw_callsite_holder *holder = &holding->holders[i];
        struct spw_stats_holder *noted = &report->holders[i];

        noted->site = holder->site;
        noted->bytes = holder->bytes;
        noted->blocks = holder->blocks;
        memcpy(noted->label, holder->label, sizeof(noted->label));
    }
    report->rule[0] = '\0';
    report->rule_bytes = 0;
    if (spw_process_settings()->mode != SPW_MODE_OBSERVE && !oom->ruleless &&
        !device->one_memory.is_one) {
        memcpy(report->rule, holding->rule, sizeof(report->rule));
        report->rule_bytes = holding->rule_bytes;
    }
}

static void gather(const struct spw_oom *oom, struct spw_stats_oom *report)
{
    report->device = oom->device->ordinal;
    report->bytes = oom->bytes;
    report->missing_bytes = oom->missing_bytes;
    report->site = oom->site;
    (void)snprintf(report->api, sizeof(report->api), "%s", oom->api);
    report->total_bytes = report->free_bytes = 0;
    report->own_other_bytes = report->other_process_bytes = 0;
    spw_callsite_label_of(oom->site, report->label, sizeof(report->label));
    ask_device(oom->device, report);
    ask_one_memory(oom->device, report);
    ask_pool(oom->pool, report);
    ask_host(oom->device, report);
    ask_others(oom->device, report);
    ask_sites(oom, report);
}

/* ---- writing ---- */

static void say_device(const struct spw_stats_oom *report)
{
    char free[SPW_SIZE_TEXT], total[SPW_SIZE_TEXT], spare[SPW_SIZE_TEXT], largest[SPW_SIZE_TEXT];
    uint64_t split = report->spare_bytes > report->largest_free_bytes
                         ? report->spare_bytes - report->largest_free_bytes
                         : 0;

    if (report->total_bytes > 0 && !report->one_memory) {
        spw_log_always("  device: %s of %s free", spw_size_text(report->free_bytes, free),
                       spw_size_text(report->total_bytes, total));
    }
    spw_log_always("  pool: %s unused, largest free range %s, fragmentation %" PRIu64 " %%",
                   spw_size_text(report->spare_bytes, spare),
                   spw_size_text(report->largest_free_bytes, largest),
                   report->spare_bytes > 0 ? split * 100 / report->spare_bytes : 0);
}

/* Without NVML, there is one figure for this process and the others. */
static void say_others(const struct spw_stats_oom *report)
{
    char own[SPW_SIZE_TEXT], others[SPW_SIZE_TEXT];
    uint64_t used = report->total_bytes - report->free_bytes;

    if (report->usage_known) {
        spw_log_always(
            "  outside the pool: %s of this process (context, code, libraries), %s of other "
            "processes",
            spw_size_text(report->own_other_bytes, own),
            spw_size_text(report->other_process_bytes, others));
    } else if (used > report->committed_bytes) {
        spw_log_always(
            "  outside the pool: %s of this process (context, code, libraries) and other processes",
            spw_size_text(used - report->committed_bytes, own));
    }
}

static void say_host(const struct spw_stats_oom *report)
{
    char left[SPW_SIZE_TEXT], total[SPW_SIZE_TEXT];

    if (report->host_total_bytes > 0) {
        spw_log_always("  host: %s of %s available",
                       spw_size_text(report->host_available_bytes, left),
                       spw_size_text(report->host_total_bytes, total));
    }
}

/* One memory for device and host: what may still be taken, and what this process has of it. */
static void say_one_memory(const struct spw_stats_oom *report)
{
    char free[SPW_SIZE_TEXT], total[SPW_SIZE_TEXT], kept[SPW_SIZE_TEXT];
    char device[SPW_SIZE_TEXT], pinned[SPW_SIZE_TEXT], own[SPW_SIZE_TEXT];

    spw_log_always("  memory: one for device and host, %s of %s may be taken; %s stay free "
                   "(SPILLWAY_MEMORY_RESERVE)",
                   spw_size_text(report->free_bytes, free),
                   spw_size_text(report->total_bytes, total),
                   spw_size_text(report->reserve_bytes, kept));
    spw_log_always("  of this process: %s on the device, %s page-locked, %s of its own memory",
                   spw_size_text(report->committed_bytes + report->passed_bytes, device),
                   spw_size_text(report->pinned_bytes, pinned),
                   spw_size_text(report->process_host_bytes, own));
}

static void say_holders(const struct spw_stats_oom *report)
{
    char size[SPW_SIZE_TEXT];

    if (report->holder_count == 0) {
        return;
    }
    spw_log_always("  held by %" PRIu64 " call site%s%s", report->holding_sites,
                   report->holding_sites == 1 ? "" : "s",
                   report->holding_sites > SPW_STATS_HOLDERS ? ", the largest:" : ":");
    for (int i = 0; i < report->holder_count; i++) {
        const struct spw_stats_holder *holder = &report->holders[i];

        spw_log_always("  %12s in %6" PRIu64 " block%s  %s", spw_size_text(holder->bytes, size),
                       holder->blocks, holder->blocks == 1 ? " " : "s", holder->label);
    }
}

/* The rule that would help, and the option that the rule needs. */
static void say_rule(const struct spw_stats_oom *report)
{
    uint64_t wanted = report->host_bytes + report->rule_bytes;
    char bytes[SPW_SIZE_TEXT], limit[SPW_SIZE_TEXT];
    char needs[128] = "";

    if (report->rule[0] == '\0' ||
        (report->host_total_bytes > 0 && wanted > report->host_total_bytes)) {
        return; /* there is none, or it is more than the machine has */
    }
    if (spw_option_get(SPW_OPT_SPILLWAY_SPILL, NULL, 0).word == SPW_SPILL_OFF) {
        (void)snprintf(needs, sizeof(needs), " with SPILLWAY_SPILL=auto");
    } else if (wanted > report->host_limit_bytes) {
        (void)snprintf(needs, sizeof(needs), " with SPILLWAY_HOST_LIMIT of %s or more",
                       spw_size_text(wanted, limit));
    }
    spw_log_always("  this policy rule would have placed %s on the host%s:",
                   spw_size_text(report->rule_bytes, bytes), needs);
    spw_log_always("  %s", report->rule);
}

bool spw_serve_oom_is_new(const struct spw_oom *oom)
{
    struct spw_serve_oom_reports *reports = &spw_serve.reports;
    uint32_t site = oom->site;
    const uint64_t bit = UINT64_C(1) << (site % 64);
    int own = (int)getpid();

    if (atomic_exchange(&reports->pid, own) != own) {
        for (size_t i = 0; i < sizeof(reports->sites) / sizeof(reports->sites[0]); i++) {
            atomic_store(&reports->sites[i], 0);
        }
    }
    return !oom->overcome && site <= SPW_CALLSITE_MOST &&
           (atomic_fetch_or(&reports->sites[site / 64], bit) & bit) == 0;
}

void spw_serve_oom_report(const struct spw_oom *oom)
{
    struct spw_stats_oom *report = oom->device->oom;

    if (!spw_stats_claim(&report->busy)) {
        return;
    }
    gather(oom, report);
    atomic_fetch_add(&report->count, 1);
    spw_log_always("  requested by %s (%s)", report->label, report->api);
    say_device(report);
    if (report->one_memory) {
        say_one_memory(report);
    } else {
        say_others(report);
        say_host(report);
    }
    say_holders(report);
    say_rule(report);
    spw_stats_unclaim(&report->busy);
}
