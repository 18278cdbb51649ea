#include "cli/commands/list.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/console/messages.h"
#include "cli/cudnn/choice.h"
#include "cli/fit/fit.h"
#include "cli/launch/child.h"
#include "cli/launch/flags.h"
#include "cli/launch/job.h"
#include "cli/launch/policy_file.h"
#include "cli/launch/preload.h"
#include "cli/launch/world.h"
#include "common/options.h"

static const char help[] =
    "usage: spillway fit [options] -- COMMAND [ARGUMENT ...]\n\n"
    "Says on which GPUs COMMAND fits. COMMAND runs on a simulated GPU with ample memory, and\n"
    "again for GPUs that differ or where the result is close. Its output is not shown. The\n"
    "need is an estimate and an upper bound, with the memory that a card itself holds.\n\n"
    "    spillway fit -- python train.py\n"
    "    spillway fit --gpus t4-16g,rtx4090-24g,a100-80g -- python train.py\n"
    "    spillway fit --gpus l4-24g --vary bs=1..16 -- python train.py --batch {bs}\n"
    "    spillway fit --gpus l4-24g --cudnn 9.26 -- python train.py\n\n"
    "The exit code is 0, or 1 when --require is not met on one of the GPUs or COMMAND\n"
    "fails on all of them.\n\n"
    "Options are written --name VALUE or --name=VALUE. Each is also an environment\n"
    "variable; spillway options lists them. [Defaults] are in brackets.\n";

static bool is_met(const struct spw_cli_fit_row *row)
{
    int required = spw_option_get(SPW_OPT_SPILLWAY_SIM_REQUIRE, NULL, 0).word;

    return required == SPW_REQUIRE_END || row->answer.verdict == SPW_CLI_FIT_FITS ||
           (required == SPW_REQUIRE_SPILL && (row->answer.verdict == SPW_CLI_FIT_TIGHT ||
                                              row->answer.verdict == SPW_CLI_FIT_SPILLS));
}

static int judge(const struct spw_cli_fit_session *session, const struct spw_cli_fit_row *rows,
                 size_t count)
{
    bool met = true, failed = true;

    for (size_t i = 0; i < count; i++) {
        met &= is_met(&rows[i]);
        failed &= rows[i].answer.verdict == SPW_CLI_FIT_FAILED;
    }
    if (failed) {
        spw_cli_complain(session->command,
                         "the command fails on every GPU (exit code %d)%s; spillway sim shows its "
                         "output",
                         rows[0].answer.code,
                         spw_cli_fit_failure(session, rows[0].has_too_large ? rows[0].too_large
                                                                            : rows[0].value));
    } else if (!met) {
        spw_cli_complain(session->command, "--require is not met, so the exit code is 1");
    }
    return met && !failed ? SPW_CLI_EXIT_OK : SPW_CLI_EXIT_FINDINGS;
}

/* Finds the largest value of the variation that fits a card. The bisection assumes that later
 * values need more memory. Without a variation, asks once. */
static struct spw_cli_fit_row search(struct spw_cli_fit_session *session,
                                     const struct spw_gpu_profile *card)
{
    struct spw_cli_fit_row row = {.card = card};
    size_t low = 0, high = session->variation.count; /* the first `low` values fit */

    session->steps = 1;
    if (session->variation.name == NULL) {
        row.answer = spw_cli_fit_ask(session, card, 0);
        row.has_value = true;
        return row;
    }
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        struct spw_cli_fit_answer answer;

        for (session->steps = 0; (high - low) >> session->steps > 0; session->steps++) {
        }
        answer = spw_cli_fit_ask(session, card, middle);

        if (answer.verdict == SPW_CLI_FIT_UNKNOWN) {
            row.answer.verdict = row.has_value ? row.answer.verdict : SPW_CLI_FIT_UNKNOWN;
            return row;
        }
        if (spw_cli_fit_is_good(&answer)) {
            low = middle + 1;
            row.value = middle;
            row.has_value = true;
            row.answer = answer;
        } else {
            high = middle;
            row.too_large = middle;
            row.has_too_large = true;
            row.too_large_failed = answer.verdict == SPW_CLI_FIT_FAILED;
            row.answer = row.has_value ? row.answer : answer;
        }
    }
    return row;
}

/* Finds the answer for each card. Begins with the largest card, because its run most likely also
 * answers for other cards. */
static void fill(struct spw_cli_fit_session *session, struct spw_cli_fit_row *rows)
{
    size_t count = session->cards.count, before = session->run_count;

    for (size_t i = count; i > 0 && (i == count || session->run_count > before); i--) {
        session->at = i - 1;
        rows[i - 1] = search(session, session->cards.cards[i - 1]);
    }
}

/* Answers anew with the other cuDNN, and prints what differs. Returns NULL if there was no run. */
static cJSON *compare(struct spw_cli_fit_session *session,
                      const struct spw_cli_cudnn_choice *choice, const struct spw_cli_fit_row *rows)
{
    static struct spw_cli_fit_row others[SPW_CLI_FIT_CARDS];
    size_t before = session->run_count;

    session->cudnn = choice->path;
    fill(session, others);
    session->cudnn = NULL;
    return session->run_count == before
               ? NULL
               : spw_cli_fit_upgrade_print(session, choice, rows, others, session->cards.count);
}

static int answer(struct spw_cli_fit_session *session, const struct spw_cli_cudnn_choice *choice)
{
    static struct spw_cli_fit_row rows[SPW_CLI_FIT_CARDS];
    const char *path = spw_option_get(SPW_OPT_SPILLWAY_SIM_JSON, NULL, 0).text;
    size_t count = session->cards.count;
    cJSON *upgrade = NULL;
    int code;

    fill(session, rows);
    if (session->run_count == 0) {
        return session->trials.interrupt != 0 ? SPW_CLI_EXIT_SIGNAL + session->trials.interrupt
                                              : session->start_code;
    }
    spw_cli_fit_table_print(session, rows, count);
    if (choice->path[0] != '\0' && session->trials.interrupt == 0) {
        upgrade = compare(session, choice, rows);
    }
    code = judge(session, rows, count);
    if (path == NULL) {
        cJSON_Delete(upgrade);
    } else if (!spw_cli_fit_table_write(session, rows, count, upgrade, path)) {
        code = SPW_CLI_EXIT_FINDINGS;
    }
    if (session->trials.interrupt != 0) {
        fputs("spillway: fit: interrupted: only the results above are known\n", stderr);
        return SPW_CLI_EXIT_SIGNAL + session->trials.interrupt;
    }
    return code;
}

/* Removes the folder of statistics files: one for each process of each run. */
static void remove_folder(const char *path)
{
    DIR *folder = opendir(path);
    const struct dirent *entry;

    while (folder != NULL && (entry = readdir(folder)) != NULL) {
        (void)unlinkat(dirfd(folder), entry->d_name, 0);
    }
    if (folder != NULL) {
        closedir(folder);
    }
    (void)rmdir(path);
}

static int run(struct spw_cli_fit_session *session, const struct spw_cli_cudnn_choice *choice)
{
    char folder[] = "/tmp/spillway-fit-XXXXXX";
    int code;

    if (choice->path[0] != '\0' && session->with_pool && mkdtemp(folder) != NULL) {
        session->folder = folder;
    }
    spw_cli_trials_begin(&session->trials, session->command, spw_cli_sim_libraries_select);
    code = answer(session, choice);
    spw_cli_trials_end(&session->trials);
    for (size_t i = 0; i < session->run_count; i++) {
        spw_cli_sim_result_fini(&session->runs[i].result);
        free(session->runs[i].usage);
    }
    free(session->runs);
    if (session->folder != NULL) {
        remove_folder(folder);
    }
    return code;
}

int spw_cli_command_fit(int argc, char **argv)
{
    static struct spw_cli_cudnn_choice choice; /* too large for the stack */
    struct spw_cli_fit_session session = {.command = argv[0]};
    struct spw_option_value host;
    struct spw_cli_world world;
    struct spw_cli_flags flags;
    int code = spw_cli_flags_read(argc, argv, SPW_CLI_FIT, help, &flags);

    if (code >= 0) {
        return code;
    }
    if (!spw_cli_fit_cards_read(argv[0], flags.gpus, &session.cards) ||
        !spw_cli_fit_variation_read(argv[0], flags.vary, flags.command, &session.variation)) {
        return SPW_CLI_EXIT_USAGE;
    }
    if (!spw_cli_world_read(argv[0], flags.command, &world)) {
        return SPW_CLI_EXIT_USAGE;
    }
    if (world.count > 1) {
        spw_cli_complain(argv[0], "--rank: one rank at a time (expected --rank 0)");
        return SPW_CLI_EXIT_USAGE;
    }
    if (!spw_cli_world_select(argv[0], &world, 0)) {
        return SPW_CLI_EXIT_CANNOT_START;
    }
    code = flags.no_pool ? SPW_CLI_EXIT_OK : spw_cli_policy_prepare(argv[0], flags.policy);
    if (code != SPW_CLI_EXIT_OK) {
        return code;
    }
    if (!spw_cli_cudnn_choose(argv[0], &choice)) {
        return SPW_CLI_EXIT_USAGE;
    }
    host = spw_option_get(SPW_OPT_SPILLWAY_SIM_HOST_MEMORY, NULL, 0);
    spw_cli_job_set_devices(flags.command);
    session.arguments = flags.command;
    session.with_pool = !flags.no_pool;
    session.spills = spw_option_get(SPW_OPT_SPILLWAY_SPILL, NULL, 0).word != SPW_SPILL_OFF;
    session.host_bytes = spw_option_bytes(&host, UINT64_MAX);
    spw_cli_launch_end_within(SPW_CLI_LAUNCH_GRACE);
    code = run(&session, &choice);
    spw_cli_fit_variation_fini(&session.variation);
    return code;
}
