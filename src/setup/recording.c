#include "setup/recording.h"

#include "device/state.h"
#include "policy/state.h"
#include "record/record.h"
#include "stats/path.h"

#include <stdio.h>

static struct spw_counters *counters_of(int device)
{
    return &spw_process_stats()->devices[device].counters;
}

static const char *call_name(int call)
{
    return call < SPW_CALL_COUNT ? spw_driver_call_name((enum spw_own_call)call) : NULL;
}

static void note_call(int ordinal, int call, uint64_t ns)
{
    if (spw_record_active()) {
        spw_record_call(ordinal, call, ns);
    }
}

static const char *rule_name(int rule)
{
    const struct spw_policy *policy = atomic_load(&spw_policy_state.policy);

    return policy != NULL && (size_t)rule < policy->rule_count ? policy->rules[rule].name : NULL;
}

/* Writes the driver's name of device 0, if it has one. */
static void write_card(struct spw_driver *driver, char *ret_text, size_t size)
{
    char name[128] = "";

    if (driver->cuDeviceGetName == NULL || spw_device_count() == 0 ||
        SPW_DRIVER_CALL(driver, -1, cuDeviceGetName, name, (int)sizeof(name),
                        spw_device_at(0)->handle) != CUDA_SUCCESS) {
        return;
    }
    name[sizeof(name) - 1] = '\0';
    (void)snprintf(ret_text, size, "%s%s", name, driver->simulated != NULL ? ", simulated" : "");
}

void spw_setup_recording(struct spw_driver *driver)
{
    struct spw_option_value path = spw_option_get(SPW_OPT_SPILLWAY_RECORD, NULL, 0);
    struct spw_option_value size = spw_option_get(SPW_OPT_SPILLWAY_RECORD_SIZE, NULL, 0);
    struct spw_stats *stats = spw_process_stats();
    struct spw_record_start start = {
        .path = path.text,
        .limit = size.percent ? size.permille : size.bytes,
        .permille = size.percent,
        .start_ticks = stats->start,
        .rank = spw_stats_rank(),
        .devices = spw_device_count(),
        .uses = spw_option_get(SPW_OPT_SPILLWAY_RECORD_USES, NULL, 0).on,
        .counters = counters_of,
        .call_name = call_name,
        .rule_name = rule_name,
        .about = {[SPW_RECORD_ABOUT_PROGRAM] = stats->process,
                  [SPW_RECORD_ABOUT_MODE] = stats->mode,
                  [SPW_RECORD_ABOUT_POLICY] = rule_name(0) != NULL ? stats->policy : NULL},
    };

    if (path.set) {
        write_card(driver, start.card, sizeof(start.card));
        spw_record_start(&start);
        driver->called = note_call;
    }
}
