#include "cli/fit/fit.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/console/messages.h"
#include "cli/verdict/need.h"
#include "common/grow.h"
#include "common/minmax.h"
#include "common/options.h"

/* More memory than any device has. */
#define PLENTY_TEXT "1099511627776"

/* A program may have no code for GPUs up to this major compute capability. Therefore the program is
 * run on each of these GPUs. */
enum { NEWEST_MAJOR_WITHOUT_CODE = 7 };

/* On a GPU of another compute capability, kernels and workspaces differ. A run on such a GPU is
 * used only if its need differs from the card's memory by at least this many percent. */
enum { MARGIN_PERCENT = 10 };

/* ---- earlier runs ---- */

static bool is_same_kind(const struct spw_gpu_profile *a, const struct spw_gpu_profile *b)
{
    return a->major == b->major && a->minor == b->minor;
}

static struct spw_cli_fit_run *find_run(const struct spw_cli_fit_session *session,
                                        const struct spw_gpu_profile *card, size_t value,
                                        bool any_kind)
{
    for (size_t i = 0; i < session->run_count; i++) {
        struct spw_cli_fit_run *run = &session->runs[i];

        if (run->cudnn == session->cudnn && run->value == value &&
            (any_kind || is_same_kind(run->card, card))) {
            return run;
        }
    }
    return NULL;
}

/* ---- the need on a card ---- */

struct total {
    uint64_t live, need, need_most; /* of the device */
    uint64_t placed;                /* on the host, by rules of the policy */
};

/* Adds up the processes, because processes of one device share one card. */
static struct total total_of(const struct spw_cli_sim_result *result,
                             const struct spw_gpu_profile *card)
{
    struct total most = {0, 0, 0, 0};

    for (int k = 0; k < SPW_DEVICES_MAX; k++) {
        struct total total = {0, 0, 0, 0};

        for (size_t i = 0; i < result->count; i++) {
            const struct spw_cli_sim_device *device = &result->processes[i].devices[k];

            if (k < result->processes[i].device_count && device->used) {
                struct spw_cli_need need = spw_cli_need_of(device, card);

                total.live += device->live_peak_bytes - device->placed_peak_bytes + need.besides;
                total.placed += device->placed_peak_bytes;
                total.need += need.in_all;
                total.need_most += need.in_all_most;
            }
        }
        most = total.need > most.need ? total : most;
    }
    return most;
}

static bool has_ended_well(const struct spw_cli_fit_run *run)
{
    return run->outcome == SPW_CLI_SIM_FITS || run->outcome == SPW_CLI_SIM_CONTINUED;
}

/* Returns true if a run on a GPU of another kind decides the answer for this card. */
static bool is_clear(const struct spw_cli_fit_run *run, const struct spw_gpu_profile *card)
{
    struct total total = total_of(&run->result, card);
    uint64_t bytes = spw_cli_fit_card_room(card);

    return has_ended_well(run) && card->major > NEWEST_MAJOR_WITHOUT_CODE &&
           (total.need_most / 100 * (100 + MARGIN_PERCENT) <= bytes ||
            total.live / 100 * (100 - MARGIN_PERCENT) > bytes);
}

/* ---- runs ---- */

/* Returns the number of runs that are expected to answer for the cards to come, with the next run;
 * 0: not known. */
static unsigned runs_to_come(const struct spw_cli_fit_session *session)
{
    const struct spw_gpu_profile *const *cards = session->cards.cards;
    unsigned count = session->steps;

    if (session->variation.name != NULL) {
        return count;
    }
    for (size_t i = session->at; i-- > 0;) {
        const struct spw_cli_fit_run *any = find_run(session, cards[i], 0, /* any_kind */ true);
        bool runs = any != NULL && !is_clear(any, cards[i]) &&
                    find_run(session, cards[i], 0, /* any_kind */ false) == NULL;

        for (size_t k = i + 1; k <= session->at; k++) {
            runs = runs && !is_same_kind(cards[k], cards[i]);
        }
        count += runs;
    }
    return session->run_count > 0 ? count : 0;
}

/* `usage` is the path of the statistics file; NULL: none. */
static bool run_on(struct spw_cli_fit_session *session, const struct spw_gpu_profile *card,
                   size_t value, bool ample, const char *usage,
                   struct spw_cli_sim_result *ret_result, int *ret_code)
{
    const struct spw_cli_setting settings[] = {
        {"SPILLWAY_SIM_PROFILE", card->id},
        {"SPILLWAY_LIMIT", NULL},
        {"SPILLWAY_STATS", usage},
        {SIM_CUDNN_LIBRARY, session->cudnn},
        {"SPILLWAY_RECORD", NULL},
        {"SPILLWAY_SIM_MEMORY", ample ? PLENTY_TEXT : NULL},
        {"SPILLWAY_SIM_OVERHEAD", ample ? "off" : "on"},
        {"SPILLWAY_GROWTH", "0%"}, /* the last two: only with ample memory */
        {"SPILLWAY_SPILL", "off"},
    };
    size_t count = sizeof(settings) / sizeof(*settings);
    bool has_policy = spw_option_get(SPW_OPT_SPILLWAY_POLICY, NULL, 0).text != NULL;
    char **arguments =
        spw_cli_fit_variation_arguments(&session->variation, value, session->arguments);
    const struct spw_cli_trial trial = {
        .arguments = arguments,
        .with_pool = session->with_pool,
        .silent = true,
        .settings = settings,
        /* SPILLWAY_SPILL keeps its value, because a policy may place memory on the host. With ample
         * memory, nothing spills anyway. */
        .setting_count = !ample       ? count - 2
                         : has_policy ? count - 1
                                      : count,
    };
    bool started;

    *ret_result = (struct spw_cli_sim_result){0};
    if (arguments == NULL) {
        return false;
    }
    spw_cli_print(stderr, "spillway: fit: run %s: %s%s%s%s%s, %s%s\n",
                  spw_cli_trials_place(&session->trials, runs_to_come(session), "about "), card->id,
                  session->variation.name != NULL ? ", " : "",
                  session->variation.name != NULL ? session->variation.name : "",
                  session->variation.name != NULL ? " " : "",
                  session->variation.name != NULL ? session->variation.values[value] : "",
                  ample ? "with ample memory" : "as it is",
                  session->cudnn != NULL ? ", with the other cuDNN" : "");
    started = spw_cli_trials_run(&session->trials, &trial, ret_result, ret_code);
    spw_cli_fit_variation_free(arguments);
    if (started && ret_result->lost > 0) {
        spw_cli_complain(session->command, "the memory of the command is not known: %s",
                         ret_result->problem);
    }
    return started;
}

/* Runs the command with ample memory. Returns NULL if it could not be started, or was
 * interrupted. */
static struct spw_cli_fit_run *make_run(struct spw_cli_fit_session *session,
                                        const struct spw_gpu_profile *card, size_t value)
{
    struct spw_cli_fit_run run = {.card = card, .value = value, .cudnn = session->cudnn};

    if (!SPW_RESIZE(&session->runs, session->run_count + 1)) {
        return NULL;
    }
    if (session->folder != NULL &&
        asprintf(&run.usage, "%s/run-%zu", session->folder, session->run_count) < 0) {
        run.usage = NULL;
    }
    if (!run_on(session, card, value, true, run.usage, &run.result, &run.code) ||
        session->trials.interrupt != 0) {
        session->start_code = run.code;
        free(run.usage);
        spw_cli_sim_result_fini(&run.result);
        return NULL;
    }
    run.outcome = spw_cli_sim_result_outcome(&run.result, run.code);
    memcpy(run.last_line, session->trials.last_line, sizeof(run.last_line));
    session->runs[session->run_count] = run;
    return &session->runs[session->run_count++];
}

/* Finds a run with ample memory that answers for a card, or makes such a run. Returns NULL if the
 * run could not be made. */
static const struct spw_cli_fit_run *measure(struct spw_cli_fit_session *session,
                                             const struct spw_gpu_profile *card, size_t value)
{
    struct spw_cli_fit_run *run = find_run(session, card, value, false);

    if (run == NULL) {
        run = find_run(session, card, value, true);
        if (run == NULL || !is_clear(run, card)) {
            run = make_run(session, card, value);
        }
    }
    return run;
}

/* ---- answers ---- */

static void try_card(struct spw_cli_fit_session *session, const struct spw_gpu_profile *card,
                     size_t value, struct spw_cli_fit_answer *answer)
{
    const struct spw_cli_sim_device *device = NULL;
    static const enum spw_cli_fit_verdict verdicts[] = {
        [SPW_CLI_SIM_UNUSED] = SPW_CLI_FIT_UNUSED,
        [SPW_CLI_SIM_UNRECORDED] = SPW_CLI_FIT_UNKNOWN,
        [SPW_CLI_SIM_FITS] = SPW_CLI_FIT_TIGHT,
        [SPW_CLI_SIM_SPILLS] = SPW_CLI_FIT_SPILLS,
        [SPW_CLI_SIM_CONTINUED] = SPW_CLI_FIT_TIGHT,
        [SPW_CLI_SIM_DOES_NOT_FIT] = SPW_CLI_FIT_TOO_SMALL,
        [SPW_CLI_SIM_FAILED] = SPW_CLI_FIT_FAILED,
    };
    struct spw_cli_sim_result result;
    bool started = run_on(session, card, value, false, NULL, &result, &answer->code);

    answer->verdict = SPW_CLI_FIT_UNKNOWN;
    if (started && session->trials.interrupt == 0) {
        answer->was_run = true;
        answer->verdict = verdicts[spw_cli_sim_result_outcome(&result, answer->code)];
        answer->spilled = result.host_peak_bytes;
        for (size_t i = 0; i < result.rule_count; i++) {
            answer->spilled -= spw_min(answer->spilled, result.rules[i].host_peak_bytes);
        }
    }
    while ((device = spw_cli_sim_next(&result, device)) != NULL) {
        answer->to_host_bytes += device->spilled_bytes;
        answer->from_host_bytes += device->promoted_bytes;
    }
    spw_cli_sim_result_fini(&result);
}

static void answer_excess(struct spw_cli_fit_session *session, const struct spw_gpu_profile *card,
                          size_t value, uint64_t excess, struct spw_cli_fit_answer *answer)
{
    if (!session->with_pool || !session->spills || excess > session->host_bytes ||
        spw_gpu_profile_sharing(card).one_memory) {
        answer->verdict = SPW_CLI_FIT_TOO_SMALL;
    } else if (session->cards.chosen && session->variation.name == NULL) {
        try_card(session, card, value, answer);
    } else {
        answer->verdict = SPW_CLI_FIT_SPILLS;
        answer->spilled = excess;
    }
}

/* The longest step of all devices. */
static struct spw_cli_range step_on(const struct spw_cli_fit_run *run,
                                    const struct spw_gpu_profile *card)
{
    const struct spw_cli_sim_device *device = NULL;
    struct spw_cli_range longest = {0, 0};

    while ((device = spw_cli_sim_next(&run->result, device)) != NULL) {
        struct spw_cli_range step = spw_cli_step_time(device, run->card, card);

        longest = step.most > longest.most ? step : longest;
    }
    return longest;
}

struct spw_cli_fit_answer spw_cli_fit_ask(struct spw_cli_fit_session *session,
                                          const struct spw_gpu_profile *card, size_t value)
{
    struct spw_cli_fit_answer answer = {.verdict = SPW_CLI_FIT_UNKNOWN};
    const struct spw_cli_fit_run *run =
        session->trials.interrupt == 0 ? measure(session, card, value) : NULL;
    uint64_t bytes = spw_cli_fit_card_room(card);
    struct total total;

    if (run == NULL) {
        return answer;
    }
    total = total_of(&run->result, card);
    answer.step = step_on(run, card);
    answer.need = total.need;
    answer.need_most = total.need_most;
    answer.placed = total.placed;
    answer.code = run->code;
    if (run->outcome == SPW_CLI_SIM_UNUSED) {
        answer.verdict = run->code == 0 ? SPW_CLI_FIT_UNUSED : SPW_CLI_FIT_FAILED;
    } else if (run->outcome == SPW_CLI_SIM_UNRECORDED) {
        answer.verdict = SPW_CLI_FIT_UNKNOWN;
    } else if (!has_ended_well(run)) {
        answer.verdict = SPW_CLI_FIT_FAILED;
    } else if (total.need_most <= bytes) {
        answer.verdict = SPW_CLI_FIT_FITS;
    } else if (total.live > bytes) {
        answer_excess(session, card, value, total.live - bytes, &answer);
    } else {
        try_card(session, card, value, &answer);
    }
    if (answer.verdict == SPW_CLI_FIT_SPILLS) {
        answer.slowdown = spw_cli_step_slowdown(answer.step, card, answer.spilled, answer.spilled);
    }
    return answer;
}

const char *spw_cli_fit_failure(const struct spw_cli_fit_session *session, size_t value)
{
    static char text[SPW_CLI_TRIAL_LINE + 2];

    text[0] = '\0';
    for (size_t i = 0; i < session->run_count; i++) {
        const struct spw_cli_fit_run *run = &session->runs[i];

        if (run->cudnn == NULL && run->value == value && !has_ended_well(run) &&
            run->last_line[0] != '\0') {
            (void)snprintf(text, sizeof(text), ": %s", run->last_line);
        }
    }
    return text;
}

struct spw_cli_fit_answer spw_cli_fit_measured(const struct spw_cli_fit_run *run)
{
    struct total total = total_of(&run->result, run->card);

    return (struct spw_cli_fit_answer){
        .verdict = has_ended_well(run) ? SPW_CLI_FIT_FITS : SPW_CLI_FIT_FAILED,
        .need = total.need,
        .need_most = total.need_most,
        .placed = total.placed,
        .code = run->code,
        .was_run = true,
    };
}

bool spw_cli_fit_is_good(const struct spw_cli_fit_answer *answer)
{
    return answer->verdict == SPW_CLI_FIT_FITS || answer->verdict == SPW_CLI_FIT_TIGHT ||
           answer->verdict == SPW_CLI_FIT_UNUSED;
}
