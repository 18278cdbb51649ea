#include "cli/verdict/outputs.h"

#include "cli/console/messages.h"
#include "cli/verdict/need.h"
#include "common/minmax.h"

#include <inttypes.h>
#include <stdio.h>

/* More memory than any device has. */
static const uint64_t plenty_bytes = UINT64_C(1) << 40;
static const uint64_t granule_bytes = UINT64_C(2) << 20;

/* The search ends when the smallest size is known with a relative precision of 1/PRECISION, or
 * after MOST_TRIES runs. */
enum { PRECISION = 50, MOST_TRIES = 6 };

struct comparison {
    struct spw_cli_trials trials;
    char **arguments;
    unsigned left; /* upper bound on the remaining runs of the search */
};

/* One way to run the command, and its results. */
struct side {
    const char *label;
    bool with_pool;
    int code; /* exit code on the requested devices */
    bool started;
    bool known; /* a run succeeded, and the peaks are known */
    uint64_t live_peak_bytes;
    uint64_t used_peak_bytes;
    struct spw_cli_need need; /* need of a card, for the device that needs most */
    uint64_t enough_bytes;    /* the smallest size that worked; 0: none */
    uint64_t too_small_bytes; /* largest size that did not suffice; 0: none */
    bool continues;           /* the program ignores a refusal even with ample memory */
    unsigned tries;
};

/* ---- one run ---- */

/* Runs the command on devices of `bytes`. Spilling is off, because almost any device is large
 * enough with it. If `bytes` is 0, the user's settings apply instead. */
static bool run(struct comparison *comparison, bool with_pool, uint64_t bytes, bool silent,
                struct spw_cli_sim_result *ret_result, int *ret_code)
{
    char memory[32];
    const struct spw_cli_setting settings[] = {
        {"SPILLWAY_SIM_MEMORY", memory}, {"SPILLWAY_LIMIT", NULL},  {"SPILLWAY_STATS", NULL},
        {"SPILLWAY_RECORD", NULL},       {"SPILLWAY_SPILL", "off"},
    };
    const struct spw_cli_trial trial = {
        .arguments = comparison->arguments,
        .with_pool = with_pool,
        .silent = silent,
        .settings = settings,
        .setting_count = bytes > 0 ? sizeof(settings) / sizeof(*settings) : 0,
    };

    snprintf(memory, sizeof(memory), "%" PRIu64, bytes);
    return spw_cli_trials_run(&comparison->trials, &trial, ret_result, ret_code);
}

/* ---- runs with output ---- */

static void learn(struct side *side, const struct spw_cli_sim_result *result)
{
    const struct spw_cli_sim_device *device = NULL;

    side->known = true;
    while ((device = spw_cli_sim_next(result, device)) != NULL) {
        struct spw_cli_need need = spw_cli_need_of(device, spw_cli_cards_profile());

        if (device->used && need.in_all_most > side->need.in_all_most) {
            side->need = need;
        }
        side->live_peak_bytes = spw_max(side->live_peak_bytes, device->live_peak_bytes);
        side->used_peak_bytes = spw_max(side->used_peak_bytes, device->used_peak_bytes);
        side->enough_bytes = spw_max(side->enough_bytes, device->total_bytes);
    }
}

static void learn_failure(struct side *side, const struct spw_cli_sim_result *result)
{
    const struct spw_cli_sim_device *device = spw_cli_sim_result_failure(result);

    if (device != NULL) {
        side->too_small_bytes = device->total_bytes;
    }
}

/* Runs the command with ample memory, and keeps the peaks. */
static void show_ample(struct comparison *comparison, struct side *side)
{
    struct spw_cli_sim_result result;
    char label[64];
    int code;

    if (run(comparison, side->with_pool, plenty_bytes, false, &result, &code)) {
        enum spw_cli_sim_outcome outcome = spw_cli_sim_result_outcome(&result, code);

        snprintf(label, sizeof(label), "%s, with ample memory", side->label);
        spw_cli_outcome_print(&result, code, label);
        side->continues = outcome == SPW_CLI_SIM_CONTINUED;
        if (outcome == SPW_CLI_SIM_FITS || side->continues) {
            learn(side, &result);
        }
    }
    spw_cli_sim_result_fini(&result);
}

/* Runs the command on the requested devices. If they were too small, runs the command again with
 * ample memory, because a lack of memory changes the peaks. */
static void show(struct comparison *comparison, struct side *side)
{
    struct spw_cli_sim_result result;
    enum spw_cli_sim_outcome outcome;

    side->started = run(comparison, side->with_pool, 0, false, &result, &side->code);
    if (!side->started) {
        spw_cli_sim_result_fini(&result);
        return;
    }
    spw_cli_outcome_print(&result, side->code, side->label);
    spw_cli_verdict_shared(&result);
    outcome = spw_cli_sim_result_outcome(&result, side->code);
    if (outcome == SPW_CLI_SIM_FITS) {
        learn(side, &result);
    } else if (outcome == SPW_CLI_SIM_DOES_NOT_FIT || outcome == SPW_CLI_SIM_CONTINUED) {
        learn_failure(side, &result);
    }
    spw_cli_sim_result_fini(&result);
    if (comparison->trials.interrupt == 0 &&
        (outcome == SPW_CLI_SIM_DOES_NOT_FIT || outcome == SPW_CLI_SIM_CONTINUED ||
         outcome == SPW_CLI_SIM_SPILLS)) {
        show_ample(comparison, side);
    }
}

/* ---- the smallest device ---- */

static uint64_t round_up(uint64_t bytes)
{
    return (bytes + granule_bytes - 1) / granule_bytes * granule_bytes;
}

enum trial { ENOUGH, TOO_SMALL, FAILED };

/* If the program continued after a refusal, the device is too small, unless the program continues
 * after a refusal even with ample memory. */
static enum trial judge(const struct side *side, enum spw_cli_sim_outcome outcome)
{
    if (outcome == SPW_CLI_SIM_FITS || (outcome == SPW_CLI_SIM_CONTINUED && side->continues)) {
        return ENOUGH;
    }
    return outcome == SPW_CLI_SIM_DOES_NOT_FIT || outcome == SPW_CLI_SIM_CONTINUED ? TOO_SMALL
                                                                                   : FAILED;
}

/* Tries one size, and prints the answer. Returns false if the run failed for another reason or was
 * interrupted. This ends the search. */
static bool try_size(struct comparison *comparison, struct side *side, uint64_t bytes)
{
    static const char *const answers[] = {"enough", "too small", "failed for another reason"};
    enum trial trial = FAILED;
    const char *place = spw_cli_trials_place(&comparison->trials, comparison->left, "at most ");
    struct spw_cli_sim_result result;
    int code;

    comparison->left--;
    side->tries++;
    if (run(comparison, side->with_pool, bytes, true, &result, &code)) {
        trial = judge(side, spw_cli_sim_result_outcome(&result, code));
    }
    spw_cli_sim_result_fini(&result);
    if (comparison->trials.interrupt != 0) {
        return false;
    }
    fprintf(stderr, "spillway:   %s, %s: %s (run %s)\n", side->label, spw_cli_size(bytes),
            answers[trial], place);
    if (trial == ENOUGH) {
        side->enough_bytes = bytes;
    } else if (trial == TOO_SMALL) {
        side->too_small_bytes = bytes;
    }
    return trial != FAILED;
}

/* Searches for the smallest device size that suffices. `least_bytes`, the live memory, is the lower
 * bound. The first size that is tried is the peak of a run with ample memory. A smaller size may
 * suffice, because caches shrink if there is less memory. */
static void search(struct comparison *comparison, struct side *side, uint64_t least_bytes)
{
    uint64_t low = least_bytes > granule_bytes ? round_up(least_bytes) - granule_bytes : 0;
    uint64_t next = round_up(side->used_peak_bytes);

    while (side->tries < MOST_TRIES && next < side->enough_bytes) {
        uint64_t high;

        if (!try_size(comparison, side, next)) {
            return;
        }
        high = side->enough_bytes;
        low = side->too_small_bytes > low ? side->too_small_bytes : low;
        if (high - low <= high / PRECISION || high - low <= granule_bytes) {
            return;
        }
        next = round_up(low + (high - low) / 2);
    }
}

static void say_side(const struct side *side)
{
    if (!side->known) {
        fprintf(stderr, "spillway: %s: no run succeeded, so the peaks are not known\n",
                side->label);
        return;
    }
    fprintf(stderr,
            "spillway: %s: peak live %s, peak device memory %s; smallest size tried that worked: "
            "%s; %s%s; a real %s needs about %s, at most %s\n",
            side->label, spw_cli_size(side->live_peak_bytes), spw_cli_size(side->used_peak_bytes),
            spw_cli_size(side->enough_bytes),
            side->too_small_bytes > 0 ? spw_cli_size(side->too_small_bytes) : "",
            side->too_small_bytes > 0 ? " was too small" : "smaller ones were not tried",
            spw_cli_cards_profile()->id, spw_cli_size(side->need.in_all),
            spw_cli_size(side->need.in_all_most));
}

static void conclude(struct comparison *comparison, struct side *bare, struct side *pooled)
{
    uint64_t held = pooled->known ? pooled->live_peak_bytes : 0;

    fprintf(stderr,
            "spillway: searching for the smallest device that is enough without spilling: up to %d "
            "more runs each, without their output\n",
            MOST_TRIES);
    comparison->left = pooled->known ? 2 * MOST_TRIES : MOST_TRIES;
    if (bare->known) {
        search(comparison, bare, held);
    }
    comparison->left = MOST_TRIES;
    if (pooled->known && comparison->trials.interrupt == 0) {
        search(comparison, pooled, held);
    }
    say_side(bare);
    say_side(pooled);
}

static int compare(struct comparison *comparison)
{
    struct side bare = {.label = "bare"};
    struct side pooled = {.label = "under the pool", .with_pool = true};

    show(comparison, &bare);
    if (!bare.started) {
        return bare.code;
    }
    if (comparison->trials.interrupt == 0) {
        show(comparison, &pooled);
    }
    if ((bare.known || pooled.known) && comparison->trials.interrupt == 0) {
        conclude(comparison, &bare, &pooled);
    }
    if (comparison->trials.interrupt != 0) {
        fputs("spillway: interrupted: only the results above are known\n", stderr);
        return SPW_CLI_EXIT_SIGNAL + comparison->trials.interrupt;
    }
    return pooled.code;
}

int spw_cli_compare(const char *command, char **arguments, spw_cli_prepare *prepare)
{
    struct comparison comparison = {.arguments = arguments};
    int code;

    spw_cli_trials_begin(&comparison.trials, command, prepare);
    code = compare(&comparison);
    spw_cli_trials_end(&comparison.trials);
    return code;
}
