#include "setup/start.h"

#include <assert.h>
#include <stdio.h>

#include "common/options.h"
#include "device/state.h"
#include "driver/dl.h"
#include "migrate/move/barrier.h"
#include "policy/state.h"
#include "setup/mode.h"
#include "setup/recording.h"
#include "setup/sites.h"
#include "stats/exit.h"
#include "stats/stats.h"
#include "system/log.h"
#include "system/start.h"

static_assert((int)SPW_CALL_COUNT <= (int)SPW_STATS_CALLS, "a slot for every call of our own");

static void report_unknown(const char *name, void *context)
{
    char complaint[256];

    spw_option_unknown(name, complaint, sizeof(complaint));
    spw_log_always("%s", complaint);
}

/* Reports every option with a bad value, once. Later readers of an option do not report it. */
static void report_options(void)
{
    char complaint[SPW_COMPLAINT_TEXT];

    for (int i = 0; i < SPW_OPT_COUNT; i++) {
        const struct spw_option_row *row = spw_option_row(i);

        if (row->scope == SPW_SCOPE_SIM || i == SPW_OPT_SPILLWAY_LOG) {
            continue;
        }
        (void)spw_option_get(i, complaint, sizeof(complaint));
        if (complaint[0] != 0) {
            spw_log_always("%s", complaint);
        }
    }
    spw_option_each_unknown(report_unknown, NULL);
}

void spw_setup_settings(struct spw_process *process)
{
    struct spw_settings *settings = &process->settings;

    spw_log_init();
    report_options();
    spw_start_keep_environment();
    *settings = (struct spw_settings){
        .mode = spw_option_get(SPW_OPT_SPILLWAY_MODE, NULL, 0).word,
        .check = spw_option_get(SPW_OPT_SPILLWAY_CHECK, NULL, 0).on,
        .whole_copies = !spw_option_get(SPW_OPT_SPILLWAY_SPLIT_COPIES, NULL, 0).on,
        .graphs_stay =
            spw_option_get(SPW_OPT_SPILLWAY_GRAPHS, NULL, 0).word == SPW_GRAPH_MEMORY_STAY,
        .free_waits = spw_option_get(SPW_OPT_SPILLWAY_FREE_WAITS, NULL, 0).on,
    };
    if (settings->mode == SPW_MODE_OBSERVE || settings->check ||
        atomic_load(&spw_policy_state.policy) != NULL) {
        atomic_store(&process->unusual, true);
    }
    if (settings->mode == SPW_MODE_OBSERVE && atomic_load(&spw_policy_state.policy) != NULL) {
        spw_log_always("SPILLWAY_POLICY has no effect in mode observe");
    }
    /* The barrier is for moves and for blocks that other processes map. Its depth also shows which
     * calls are made inside other calls: their uses are not recorded. */
    if (settings->mode != SPW_MODE_OBSERVE ||
        spw_option_get(SPW_OPT_SPILLWAY_RECORD_USES, NULL, 0).on) {
        spw_migrate_barrier_arm();
    }
}

void spw_setup_statistics(struct spw_process *process)
{
    struct spw_driver *driver = atomic_load(&process->driver);
    struct spw_stats *stats;

    stats = process->stats = spw_stats_create();
    stats->simulated = driver->simulated != NULL;
    stats->safe = spw_option_get(SPW_OPT_SPILLWAY_OVERLAP, NULL, 0).word == SPW_OVERLAP_SAFE;
    spw_setup_sites(spw_device_count());
    for (int i = 0; i < SPW_CALL_COUNT; i++) {
        (void)snprintf(stats->call_names[i], sizeof(stats->call_names[i]), "%s",
                       spw_driver_call_name(i));
    }
    for (int i = 0; i < spw_device_count(); i++) {
        struct spw_device *device = spw_device_at(i);

        device->counters = &stats->devices[i].counters;
        device->refusal = &stats->devices[i].refusal;
        device->ruled.ordinal = i;
        device->ruled.tallies = stats->devices[i].rules;
        device->oom = &stats->oom;
        spw_setup_sites_charge(device, i);
        driver->calls[i] = stats->devices[i].driver_calls;
    }
}

void spw_setup_outputs(struct spw_process *process)
{
    struct spw_driver *driver = atomic_load(&process->driver);
    struct spw_stats *stats = process->stats;
    char why[SPW_SETUP_MODE_WHY];
    struct spw_setup_mode text = spw_setup_mode_of(process->settings.mode, why, sizeof(why));

    spw_stats_start(stats, text.name, text.why,
                    spw_option_get(SPW_OPT_SPILLWAY_STATS, NULL, 0).text,
                    (enum spw_summary)spw_option_get(SPW_OPT_SPILLWAY_SUMMARY, NULL, 0).word,
                    spw_device_count());
    spw_setup_recording(driver);
    spw_log(SPW_LOG_INFO, "%s with %d device%s, mode %s",
            driver->simulated != NULL ? "simulated GPU" : "NVIDIA driver", spw_device_count(),
            spw_device_count() == 1 ? "" : "s", text.name);
    if (spw_driver_dl_behind() != NULL) {
        spw_log(SPW_LOG_INFO,
                "%s is between spillway and the driver: its limits and counts include "
                "spillway's memory",
                spw_driver_dl_behind());
    }
}
