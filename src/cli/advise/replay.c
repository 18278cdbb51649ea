#include "cli/advise/replay.h"

#include "cli/console/messages.h"
#include "cli/launch/preload.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* More memory than any device has. */
#define PLENTY_TEXT "1099511627776"

/* Recorded uses take much room. */
#define RECORD_SIZE_TEXT "1073741824"

bool spw_cli_advise_replays_begin(struct spw_cli_advise_replays *replays, const char *command,
                                  char **arguments, uint64_t link)
{
    *replays = (struct spw_cli_advise_replays){.arguments = arguments,
                                               .folder = "/tmp/spillway-advise-XXXXXX"};
    if (mkdtemp(replays->folder) == NULL) {
        spw_cli_complain(command, "there is no folder for recordings in /tmp: %s", strerror(errno));
        return false;
    }
    (void)snprintf(replays->ample, sizeof(replays->ample), "%s/ample.rec", replays->folder);
    (void)snprintf(replays->record, sizeof(replays->record), "%s/run.rec", replays->folder);
    (void)snprintf(replays->policy, sizeof(replays->policy), "%s/policy.json", replays->folder);
    (void)snprintf(replays->link, sizeof(replays->link), "%" PRIu64, link);
    spw_cli_trials_begin(&replays->trials, command, spw_cli_sim_libraries_select);
    return true;
}

void spw_cli_advise_replays_end(struct spw_cli_advise_replays *replays)
{
    spw_cli_trials_end(&replays->trials);
    (void)unlink(replays->ample);
    (void)unlink(replays->record);
    (void)unlink(replays->policy);
    (void)rmdir(replays->folder);
}

/* The device that the advice is about: the one with the highest peak. */
static const struct spw_cli_sim_device *main_device(const struct spw_cli_sim_result *result)
{
    const struct spw_cli_sim_device *device = NULL;
    static const struct spw_cli_sim_device none;
    const struct spw_cli_sim_device *found = &none;

    while ((device = spw_cli_sim_next(result, device)) != NULL) {
        found = device->live_peak_bytes > found->live_peak_bytes ? device : found;
    }
    return found;
}

void spw_cli_advise_run_read(const struct spw_cli_sim_device *device,
                             struct spw_cli_advise_run *ret_run)
{
    *ret_run = (struct spw_cli_advise_run){
        .half_count = device->half_count,
        .own_bytes = device->own_peak_bytes,
        .host_bytes = device->host_peak_bytes,
        .spilled_bytes = device->spilled_bytes,
        .promoted_bytes = device->promoted_bytes,
    };
    memcpy(ret_run->half_ns, device->half_ns, sizeof(ret_run->half_ns));
}

static bool run(struct spw_cli_advise_replays *replays, const struct spw_cli_trial *trial,
                const char *what, struct spw_cli_advise_run *ret_run)
{
    struct spw_cli_sim_result result;
    bool started;
    int code;

    fprintf(stderr, "spillway: advise: run %s: %s\n",
            spw_cli_trials_place(&replays->trials, replays->total - replays->trials.runs, ""),
            what);
    (void)unlink(replays->record);
    started = spw_cli_trials_run(&replays->trials, trial, &result, &code);
    spw_cli_advise_run_read(main_device(&result), ret_run);
    ret_run->code = code;
    ret_run->outcome = spw_cli_sim_result_outcome(&result, code);
    spw_cli_sim_result_fini(&result);
    return started && replays->trials.interrupt == 0;
}

bool spw_cli_advise_replays_record(struct spw_cli_advise_replays *replays,
                                   struct spw_cli_advise_run *ret_run)
{
    const struct spw_cli_setting settings[] = {
        {"SPILLWAY_SIM_MEMORY", PLENTY_TEXT},
        {"SPILLWAY_LIMIT", NULL},
        {"SPILLWAY_STATS", NULL},
        {"SPILLWAY_SPILL", "off"},
        {"SPILLWAY_GROWTH", NULL},
        {"SPILLWAY_POLICY", NULL},
        {"SPILLWAY_SIM_TIME", "on"},
        {"SPILLWAY_SIM_RATES", "card"},
        {"SPILLWAY_SIM_LINK", replays->link},
        {"SPILLWAY_SIM_LINK_OUT", NULL},
        {"SPILLWAY_SIM_OVERHEAD", "off"},
        {"SPILLWAY_RECORD", replays->ample},
        {"SPILLWAY_RECORD_USES", "on"},
        {"SPILLWAY_RECORD_MODULES", "on"},
        {"SPILLWAY_RECORD_SIZE", RECORD_SIZE_TEXT},
    };
    const struct spw_cli_trial trial = {
        .arguments = replays->arguments,
        .with_pool = true,
        .silent = true,
        .settings = settings,
        .setting_count = sizeof(settings) / sizeof(*settings),
    };

    return run(replays, &trial, "with ample memory", ret_run);
}

bool spw_cli_advise_replays_run(struct spw_cli_advise_replays *replays, uint64_t device_bytes,
                                uint64_t host_bytes, const char *policy, const char *what_rules,
                                struct spw_cli_advise_run *ret_run)
{
    char device[32], host[32], what[128];
    const struct spw_cli_setting settings[] = {
        {"SPILLWAY_SIM_MEMORY", device},
        {"SPILLWAY_LIMIT", NULL},
        {"SPILLWAY_STATS", NULL},
        {"SPILLWAY_SPILL", NULL},
        {"SPILLWAY_POLICY", policy},
        {"SPILLWAY_SIM_TIME", "on"},
        {"SPILLWAY_SIM_RATES", "card"},
        {"SPILLWAY_SIM_LINK", replays->link},
        {"SPILLWAY_SIM_LINK_OUT", NULL},
        {"SPILLWAY_SIM_OVERHEAD", "off"},
        {"SPILLWAY_RECORD", replays->record},
        {"SPILLWAY_RECORD_USES", NULL},
        {"SPILLWAY_RECORD_MODULES", NULL},
        {"SPILLWAY_HOST_LIMIT", host}, /* last, as it is left out without a limit */
    };
    size_t count = sizeof(settings) / sizeof(*settings);
    const struct spw_cli_trial trial = {
        .arguments = replays->arguments,
        .with_pool = true,
        .silent = true,
        .settings = settings,
        .setting_count = host_bytes != UINT64_MAX ? count : count - 1,
    };

    (void)snprintf(device, sizeof(device), "%" PRIu64, device_bytes);
    (void)snprintf(host, sizeof(host), "%" PRIu64, host_bytes);
    (void)snprintf(what, sizeof(what), "within the budget, %s%s",
                   policy == NULL              ? "without rules"
                   : policy == replays->policy ? "with rules that "
                                               : "with ",
                   policy == NULL              ? ""
                   : policy == replays->policy ? what_rules
                                               : policy);
    return run(replays, &trial, what, ret_run);
}

/* Returns the time at a place in the second half. The place may lie between two marks. */
static double time_at(const struct spw_cli_advise_run *run, double place)
{
    unsigned before = place > 0 ? (unsigned)place : 0;
    double rest = place > before ? place - before : 0;

    return before + 1 < run->half_count
               ? (double)run->half_ns[before] +
                     rest * (double)(run->half_ns[before + 1] - run->half_ns[before])
               : (double)run->half_ns[run->half_count - 1];
}

static int compare(const void *left, const void *right)
{
    const double *a = left, *b = right;

    return *a < *b ? -1 : *a > *b ? 1 : 0;
}

uint64_t spw_cli_advise_run_step_ns(const struct spw_cli_advise_run *run, double steps)
{
    double times[SPW_CLI_SIM_HALF], last = run->half_count > 0 ? run->half_count - 1 : 0;
    double length = steps > 1 ? last / steps : last;
    size_t count = 0;

    while (length > 0 && count < SPW_CLI_SIM_HALF && (double)(count + 1) * length <= last + 0.5) {
        double end = last - (double)count * length;

        times[count++] = time_at(run, end) - time_at(run, end - length);
    }
    if (count == 0) {
        return 0;
    }
    qsort(times, count, sizeof(*times), compare);
    return (uint64_t)times[(count - 1) / 2];
}

bool spw_cli_advise_run_is_good(const struct spw_cli_advise_run *run)
{
    return run->outcome == SPW_CLI_SIM_FITS || run->outcome == SPW_CLI_SIM_SPILLS;
}
