#include "cli/verdict/outputs.h"

#include "cli/console/messages.h"
#include "cli/launch/child.h"
#include "cli/verdict/need.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>

/* Adds the failed call: "allocation 7 on device 0, 16 MiB by cudaMalloc". */
static void add_call(struct spw_cli_line *line, const struct spw_cli_sim_refusal *refusal,
                     int ordinal)
{
    if (refusal->number > 0) {
        spw_cli_line_add(line, "allocation %" PRIu64 " on device %d, %s by %s", refusal->number,
                         ordinal, spw_cli_size(refusal->bytes), refusal->api);
    } else {
        spw_cli_line_add(line, "%s on device %d, which needed %s%s", refusal->api, ordinal,
                         spw_cli_size(refusal->bytes),
                         refusal->lack == SPW_CLI_SIM_LACK_DEVICE ? " for code or data of its own"
                                                                  : "");
    }
    spw_cli_line_add(line, " (thread %s, %d)", refusal->thread, refusal->tid);
}

static void add_lack(struct spw_cli_line *line, const struct spw_cli_sim_refusal *refusal)
{
    if (refusal->lack == SPW_CLI_SIM_LACK_NOTHING) {
        spw_cli_line_add(line, "not for lack of memory; the failure was injected (--fail), or the "
                               "address space was used up");
    } else if (refusal->missing_bytes == 0) {
        spw_cli_line_add(line, "enough memory was free, but in pieces that were too small");
    } else {
        spw_cli_line_add(line, "for it, %s%s%s missing", refusal->at_least ? "at least " : "",
                         spw_cli_size(refusal->missing_bytes),
                         refusal->lack == SPW_CLI_SIM_LACK_HOST
                             ? " of host memory that may be locked (--host-memory) were"
                             : " were");
    }
}

static void add_failure(struct spw_cli_line *line, const struct spw_cli_sim_result *result)
{
    const struct spw_cli_sim_device *device = spw_cli_sim_result_failure(result);
    int ordinal;

    (void)spw_cli_sim_process_of(result, device, &ordinal);
    spw_cli_line_add(line, "does not fit in %s: ", spw_cli_size(device->total_bytes));
    if (device->last.lack == SPW_CLI_SIM_LACK_MACHINE) {
        spw_cli_line_add(line,
                         "a real machine would hang, because device and host together needed %s "
                         "more than its one memory has",
                         spw_cli_size(device->last.missing_bytes));
        return;
    }
    add_call(line, &device->last, ordinal);
    spw_cli_line_add(line, " failed: ");
    add_lack(line, &device->last);
    if (device->last.lack == SPW_CLI_SIM_LACK_DEVICE) {
        spw_cli_line_add(line,
                         "; the total need of the program is not known (sim --compare finds it)");
    }
}

enum { RULES = 3 }; /* rules that a line names */

/* Adds the memory that rules placed on the host: "300 MiB placed on the host by rule "h"". */
static void add_placed(struct spw_cli_line *line, const struct spw_cli_sim_result *result,
                       const char *where)
{
    for (size_t i = 0; i < result->rule_count && i < RULES; i++) {
        spw_cli_line_add(line, "%s%s%s%s by rule \"%s\"", i > 0 ? ", " : "",
                         spw_cli_size(result->rules[i].host_peak_bytes), i == 0 ? " placed " : "",
                         i == 0 ? where : "", result->rules[i].name);
    }
    if (result->rule_count > RULES) {
        spw_cli_line_add(line, ", more by %zu other rules", result->rule_count - RULES);
    }
}

static void add_tightness(struct spw_cli_line *line, const struct spw_cli_sim_result *result,
                          const struct spw_cli_sim_device *device,
                          const struct spw_cli_cards *cards)
{
    uint64_t left = device->total_bytes > device->used_peak_bytes
                        ? device->total_bytes - device->used_peak_bytes
                        : 0;
    size_t fitting = spw_cli_need_fitting(result, cards);

    spw_cli_line_add(line, ": %s", spw_cli_size(left));
    if (!cards->by_size) {
        spw_cli_line_add(line, " are left, and a real %s may hold up to %s besides (see below)",
                         cards->list[0]->id, spw_cli_size(spw_cli_need_here(device).besides_most));
        return;
    }
    spw_cli_line_add(line, " are left, but cards of about that size ");
    spw_cli_cards_describe(line, cards);
    if (fitting > 0) {
        spw_cli_line_add(line, ", so it fits %zu of %zu", fitting, cards->count);
    } else {
        spw_cli_line_add(line, ", so it may fit none");
    }
    spw_cli_line_add(line, " (--profile NAME asks about one)");
}

static void add_fit(struct spw_cli_line *line, const struct spw_cli_sim_result *result)
{
    const struct spw_cli_sim_device *device = spw_cli_need_tightest(result);
    bool fits = spw_cli_need_fits(result);
    struct spw_cli_cards cards;

    spw_cli_need_cards(result, &cards);
    spw_cli_line_add(line, "%s %s", fits ? "fits in" : "fits too tightly in",
                     spw_cli_size(device->total_bytes));
    if (result->rule_count > 0) {
        spw_cli_line_add(line, ", with ");
        add_placed(line, result, "on the host");
    }
    if (!fits) {
        add_tightness(line, result, device, &cards);
        return;
    }
    spw_cli_line_add(line, ", %s to spare%s", spw_cli_size(spw_cli_need_here(device).spare),
                     cards.by_size && cards.count > 0 ? " on each card of about that size" : "");
    if (result->rule_count > 0 && spw_cli_need_fits_unplaced(result)) {
        spw_cli_line_add(line, "; it would fit without the policy too");
    }
}

static void add_spill(struct spw_cli_line *line, const struct spw_cli_sim_result *result)
{
    spw_cli_line_add(line, "does not fit in %s, but runs by spilling: up to %s on the host",
                     spw_cli_size(spw_cli_need_tightest(result)->total_bytes),
                     spw_cli_size(result->host_peak_bytes));
    if (result->rule_count > 0) {
        spw_cli_line_add(line, ", of that up to ");
        add_placed(line, result, "there");
    }
}

static void add_continuation(struct spw_cli_line *line, const struct spw_cli_sim_result *result)
{
    const struct spw_cli_sim_device *device = spw_cli_sim_result_failure(result);
    int ordinal;

    (void)spw_cli_sim_process_of(result, device, &ordinal);
    spw_cli_line_add(line, "ended well in %s, but not with all that it asked for: ",
                     spw_cli_size(device->total_bytes));
    add_call(line, &device->last, ordinal);
    spw_cli_line_add(line, " failed with out of memory");
    if (result->lost_requests == 2) {
        spw_cli_line_add(line, ", as did another call");
    } else if (result->lost_requests > 2) {
        spw_cli_line_add(line, ", as did %" PRIu64 " other calls", result->lost_requests - 1);
    }
    spw_cli_line_add(line, ", and the program continued");
}

static void add_code(struct spw_cli_line *line, int code)
{
    spw_cli_line_add(line, "none: the command failed (exit code %d", code);
    if (code > SPW_CLI_EXIT_SIGNAL && code < SPW_CLI_EXIT_SIGNAL + 65) {
        spw_cli_line_add(line, ", signal %d", code - SPW_CLI_EXIT_SIGNAL);
    }
    spw_cli_line_add(line, ")");
}

/* Adds that no device was used, and the reason if it is known. */
static void add_unused(struct spw_cli_line *line, const struct spw_cli_sim_result *result, int code)
{
    const char *runtime = "";

    for (size_t i = 0; i < result->count; i++) {
        runtime = *runtime == '\0' ? result->processes[i].runtime : runtime;
    }
    if (code == 0) {
        spw_cli_line_add(line, "none: no process is known to have used a simulated device");
    } else if (code == SPW_CLI_EXIT_SIGNAL + SIGINT) {
        spw_cli_line_add(line, "none: interrupted before a simulated device was used");
    } else {
        add_code(line, code);
        spw_cli_line_add(line, " before it used a simulated device");
    }
    if (*runtime != '\0') {
        spw_cli_line_add(line, ": NVIDIA's CUDA runtime in %s works only with NVIDIA's driver",
                         runtime);
    } else if (*spw_cli_launch_lack() != '\0') {
        spw_cli_line_add(line, ": %s", spw_cli_launch_lack());
    } else if (result->count > 0) {
        spw_cli_line_add(line, ": CUDA was initialised, but nothing was allocated or launched");
    } else {
        spw_cli_line_add(line, code == 0 ? ", nor to have initialised CUDA"
                                         : "; no process is known to have initialised CUDA");
    }
}

static void add_outcome(struct spw_cli_line *line, const struct spw_cli_sim_result *result,
                        int code)
{
    switch (spw_cli_sim_result_outcome(result, code)) {
    case SPW_CLI_SIM_UNUSED:
        add_unused(line, result, code);
        break;
    case SPW_CLI_SIM_UNRECORDED:
        spw_cli_line_add(line, "none: the memory of %zu process%s is not known%s%s", result->lost,
                         result->lost == 1 ? "" : "es", result->problem[0] != '\0' ? ": " : "",
                         result->problem);
        break;
    case SPW_CLI_SIM_FITS:
        add_fit(line, result);
        break;
    case SPW_CLI_SIM_SPILLS:
        add_spill(line, result);
        break;
    case SPW_CLI_SIM_CONTINUED:
        add_continuation(line, result);
        break;
    case SPW_CLI_SIM_DOES_NOT_FIT:
        add_failure(line, result);
        break;
    case SPW_CLI_SIM_FAILED:
        if (code == SPW_CLI_EXIT_SIGNAL + SIGINT) {
            spw_cli_line_add(line, "none: interrupted; the figures are of the part that ran");
            break;
        }
        add_code(line, code);
        spw_cli_line_add(line, " without running out of memory");
        break;
    }
}

void spw_cli_outcome_print(const struct spw_cli_sim_result *result, int code, const char *label)
{
    struct spw_cli_line line = {""};

    spw_cli_line_add(&line, "%s: ", label);
    add_outcome(&line, result, code);
    fprintf(stderr, "spillway: %s\n", line.text);
}
