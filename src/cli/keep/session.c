#include "cli/keep/keep.h"

#include "cli/console/messages.h"
#include "cli/keep/choice.h"
#include "cli/keep/key.h"
#include "cli/keep/members.h"
#include "cli/keep/store.h"
#include "cli/launch/child.h"
#include "cli/launch/run_directory.h"
#include "cli/verdict/sim_result.h"
#include "common/minmax.h"
#include "common/options.h"
#include "stats/path.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WHO "run --fit"

/* Recorded uses take much room, and a few hundred steps are enough. */
#define RECORD_SIZE_TEXT "67108864"

/* The state of a run with --fit. */
static struct {
    enum { NOTHING, RECORDS, APPLIES } does;
    struct spw_cli_kept kept; /* its path and, of the script as it is now, the state */
    char **arguments;
    char folder[PATH_MAX], script[PATH_MAX], card[SPW_CLI_CARD];
    char record[PATH_MAX]; /* how the recordings begin that are removed in the end; "": none */
} session;

static const char *option_text(enum spw_option option)
{
    const char *text = getenv(spw_option_row(option)->name);

    return text != NULL && *text != '\0' ? text : NULL;
}

static void set_default(enum spw_option option, const char *text)
{
    setenv(spw_option_row(option)->name, text, /* replace */ 0);
}

/* ---- before the run ---- */

/* Returns the reason why --fit has no effect, or NULL. Of the ranks of a job, rank 0 says it. */
static const char *obstacle(void)
{
    if (option_text(SPW_OPT_SPILLWAY_POLICY) != NULL) {
        return "a policy is given, so none is chosen";
    }
    if (!spw_option_get(SPW_OPT_SPILLWAY, NULL, 0).on ||
        spw_option_get(SPW_OPT_SPILLWAY_MODE, NULL, 0).word == SPW_MODE_OBSERVE) {
        return "policies have no effect here (SPILLWAY=off, or mode observe)";
    }
    if (spw_stats_rank() >= 0) {
        return "this is a rank of a job, and it is for whole jobs; it runs without it "
               "(spillway run --fit -- mpirun ... is for all ranks)";
    }
    return NULL;
}

/* Sets the path of the kept choice. Returns false, with a reason, if nothing can be kept. */
static bool find_path(char why[SPW_CLI_KEEP_WHY])
{
    char folder[PATH_MAX];

    if (getcwd(session.folder, sizeof(session.folder)) == NULL) {
        (void)snprintf(why, SPW_CLI_KEEP_WHY, "the current folder is not known");
        return false;
    }
    if (!spw_cli_keep_folder(/* make */ true, folder, why)) {
        return false;
    }
    (void)snprintf(why, SPW_CLI_KEEP_WHY, "the path of the folder is too long");
    return snprintf(session.kept.path, PATH_MAX, "%s/%016" PRIx64 "-%016" PRIx64 ".json", folder,
                    spw_cli_keep_command(session.arguments, session.folder),
                    spw_cli_keep_device(session.card, option_text(SPW_OPT_SPILLWAY_LIMIT),
                                        option_text(SPW_OPT_SPILLWAY_HOST_LIMIT))) < PATH_MAX;
}

/* Names the recordings, which the processes create: KEPT.PID.rec, for the choice KEPT.json. A '%'
 * of the path is written as "%%". */
static void name_recordings(void)
{
    size_t length = strlen(session.kept.path) - strlen("json"), used = 0;
    static char pattern[2 * PATH_MAX];

    (void)snprintf(session.record, sizeof(session.record), "%.*s", (int)length, session.kept.path);
    for (const char *at = session.record; *at != '\0'; at++) {
        pattern[used++] = *at;
        if (*at == '%') {
            pattern[used++] = '%';
        }
    }
    (void)snprintf(pattern + used, sizeof(pattern) - used, "%%p.rec");
    set_default(SPW_OPT_SPILLWAY_RECORD, pattern);
    set_default(SPW_OPT_SPILLWAY_RECORD_SIZE, RECORD_SIZE_TEXT);
}

/* Prepares a recording from which a choice can be made. */
static void prepare_recording(void)
{
    session.does = RECORDS;
    if (option_text(SPW_OPT_SPILLWAY_RECORD) == NULL) {
        name_recordings();
    }
    set_default(SPW_OPT_SPILLWAY_RECORD_USES, "on");
    set_default(SPW_OPT_SPILLWAY_RECORD_MODULES, "on");
}

static void apply(void)
{
    session.does = APPLIES;
    setenv(spw_option_row(SPW_OPT_SPILLWAY_POLICY)->name, session.kept.path, 1);
    spw_cli_complain(WHO, "the kept choice is applied: %s", session.kept.chosen);
}

/* Uses the kept choice. Returns false if this run has to be recorded. */
static bool use_kept(void)
{
    static struct spw_cli_kept kept; /* too large for a stack */
    char why[SPW_CLI_KEEP_WHY];
    uint64_t content = session.kept.state.content;

    if (!spw_cli_kept_read(session.kept.path, &kept, why)) {
        if (*why != '\0') {
            spw_cli_complain(WHO, "%s: the choice is made again", why);
            (void)unlink(session.kept.path);
        }
        return false;
    }
    if (kept.state.content != content) {
        spw_cli_complain(WHO, "%s has changed: the choice is made again",
                         session.script[0] != '\0' ? session.script : "the script");
        (void)unlink(session.kept.path);
        return false;
    }
    session.kept = kept;
    if (kept.has_rules) {
        apply();
    } else if (kept.state.failures >= SPW_CLI_KEEP_TRIES) {
        spw_cli_complain(WHO, "no choice has done for this command: it runs without rules "
                              "(spillway policy forget -- COMMAND tries again)");
    }
    return kept.has_rules || kept.state.failures >= SPW_CLI_KEEP_TRIES;
}

void spw_cli_keep_begin(char **arguments, const char *card)
{
    const char *why_not = obstacle();
    char why[SPW_CLI_KEEP_WHY];

    session.arguments = arguments;
    (void)snprintf(session.card, sizeof(session.card), "%s", card);
    if (why_not != NULL && spw_stats_rank() <= 0) {
        spw_cli_complain(WHO, "%s", why_not);
    } else if (why_not != NULL) {
        return;
    } else if (!find_path(why)) {
        spw_cli_complain(WHO, "%s: nothing can be kept, and it runs without --fit", why);
    } else {
        (void)spw_cli_keep_script(arguments, session.script, &session.kept.state.content);
        if (!use_kept()) {
            prepare_recording();
        }
    }
}

/* ---- after the run ---- */

/* Keeps the session's state, with the rules of a policy, which is deleted. Returns false after a
 * line on stderr. */
static bool keep(cJSON *policy)
{
    const struct spw_cli_kept_for what = {
        .arguments = session.arguments,
        .folder = session.folder,
        .card = session.card,
        .limit = option_text(SPW_OPT_SPILLWAY_LIMIT),
        .script = session.script,
    };
    char why[SPW_CLI_KEEP_WHY];
    bool good = spw_cli_kept_write(&session.kept, &what, policy, why);

    if (!good) {
        spw_cli_complain(WHO, "the choice cannot be kept: %s", why);
    }
    return good;
}

/* Reads the results of the run. A simulated device has more than the pool's figures. */
static void read_result(struct spw_cli_sim_result *ret_result)
{
    spw_cli_sim_result_read(/* real */ false, ret_result);
    if (ret_result->count == 0) {
        spw_cli_sim_result_fini(ret_result);
        spw_cli_sim_result_read(/* real */ true, ret_result);
    }
}

static void keep_choice(const struct spw_cli_keep_facts *facts,
                        const struct spw_cli_keep_choice *choice, int code)
{
    session.kept.state.budget_bytes = facts->budget_bytes;
    session.kept.state.device_bytes = choice->device_bytes;
    session.kept.state.spilled_bytes = choice->spilled_bytes;
    session.kept.state.code = code;
    (void)snprintf(session.kept.chosen, sizeof(session.kept.chosen), "%s", choice->text);
    if (keep(choice->policy)) {
        spw_cli_complain(WHO, "from the next run on: %s", choice->text);
    }
}

static void choose(const struct spw_cli_sim_result *result,
                   const struct spw_cli_keep_member *members, size_t count, int code)
{
    static struct spw_cli_keep_choice choice; /* large objects have no room on a stack */
    static struct spw_cli_advise_run runs[SPW_CLI_KEEP_MEMBERS];
    static struct spw_cli_keep_facts facts[SPW_CLI_KEEP_MEMBERS];

    for (size_t i = 0; i < count; i++) {
        const struct spw_cli_sim_device *device = members[i].device;

        facts[i] = (struct spw_cli_keep_facts){
            .recording = members[i].recording,
            .ended_early = spw_cli_sim_result_outcome(result, code) == SPW_CLI_SIM_DOES_NOT_FIT,
            .budget_bytes = device->total_bytes,
            .own_bytes = device->own_peak_bytes,
            .host_bytes = device->host_limit_bytes > 0 ? device->host_limit_bytes : UINT64_MAX,
            .lacked_bytes = session.kept.state.lacked_bytes,
            .held_ns = result->real ? device->step_held_ns : 0,
        };
        if (!result->real) {
            spw_cli_advise_run_read(device, &runs[i]);
            facts[i].simulated = runs[i].half_count > 0 ? &runs[i] : NULL;
        }
    }
    spw_cli_keep_choose(facts, count, &choice);
    if (choice.policy != NULL) {
        keep_choice(facts, &choice, code);
    } else {
        spw_cli_complain(WHO, "%s", choice.text);
    }
}

static bool are_recorded(const struct spw_cli_keep_member *members, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (members[i].recording == NULL) {
            return false;
        }
    }
    return true;
}

/* After a run that was recorded. */
static void learn(const struct spw_cli_sim_result *result, int code)
{
    struct spw_cli_keep_member members[SPW_CLI_KEEP_MEMBERS];
    enum spw_cli_sim_outcome outcome = spw_cli_sim_result_outcome(result, code);
    char why[SPW_CLI_KEEP_NO_MEMBERS];
    size_t count = spw_cli_keep_members(result, members, why);

    if (outcome == SPW_CLI_SIM_FITS) {
        spw_cli_complain(WHO, "it fits as it is: nothing is chosen");
    } else if (count > 0 && !result->spilled && result->lost_requests == 0) {
        spw_cli_complain(WHO, "it failed, but not for lack of memory: nothing is chosen");
    } else if (count == 0) {
        spw_cli_complain(WHO, "%s: nothing is chosen", why);
    } else if (!are_recorded(members, count)) {
        spw_cli_complain(WHO, "there is no recording of the program: nothing is chosen");
    } else {
        choose(result, members, count, code);
    }
}

/* The most bytes that one device had on the host without a rule. */
static uint64_t spilled_bytes(const struct spw_cli_sim_result *result)
{
    const struct spw_cli_sim_device *device = NULL;
    uint64_t most = 0;

    while ((device = spw_cli_sim_next(result, device)) != NULL) {
        most = spw_max(most, device->host_peak_bytes - device->placed_peak_bytes);
    }
    return most;
}

/* After a run with the kept choice. */
static void judge(const struct spw_cli_sim_result *result, int code)
{
    static const char *const verdicts[] = {
        [SPW_CLI_KEEP_SPILLED] = "more spilled than predicted",
        [SPW_CLI_KEEP_REFUSED] = "the program was refused memory",
        [SPW_CLI_KEEP_FAILED] = "the program failed, and it did not without the rules",
    };
    const struct spw_cli_sim_device *failure = spw_cli_sim_result_failure(result);
    const struct spw_cli_keep_run run = {
        .outcome = spw_cli_sim_result_outcome(result, code),
        .code = code,
        .spilled_bytes = spilled_bytes(result),
        .refused_bytes = failure != NULL ? failure->last.bytes : 0,
    };
    uint64_t lacked;
    enum spw_cli_keep_verdict verdict = spw_cli_keep_judge(&session.kept.state, &run, &lacked);
    struct spw_cli_keep_state *state = &session.kept.state;

    if (verdict == SPW_CLI_KEEP_GOOD) {
        return;
    }
    state->failures++;
    state->lacked_bytes += lacked;
    (void)snprintf(session.kept.chosen, sizeof(session.kept.chosen), "nothing yet: %s",
                   verdicts[verdict]);
    if (keep(NULL)) {
        spw_cli_complain(WHO, "the kept choice did not do (%s): %s", verdicts[verdict],
                         state->failures < SPW_CLI_KEEP_TRIES
                             ? "the next run makes it again"
                             : "no further one is made (spillway policy forget -- COMMAND tries "
                               "again)");
    }
}

/* Removes the recordings that no user asked for. */
static void remove_recordings(void)
{
    size_t count;
    const char *const *recordings = spw_cli_run_directory_recordings(&count);

    for (size_t i = 0; i < count && session.record[0] != '\0'; i++) {
        if (strncmp(recordings[i], session.record, strlen(session.record)) == 0) {
            (void)unlink(recordings[i]);
        }
    }
}

void spw_cli_keep_end(int code)
{
    struct spw_cli_sim_result result;
    int signal_number;

    if (session.does != NOTHING) {
        read_result(&result);
        if (session.does == RECORDS) {
            learn(&result, code);
        } else if (!spw_cli_launch_was_interrupted(&signal_number)) {
            judge(&result, code);
        }
        spw_cli_sim_result_fini(&result);
    }
    remove_recordings();
}
