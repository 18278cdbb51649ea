#include "cli/commands/list.h"
#include "cli/commands/page.h"

#include "cli/console/messages.h"
#include "cli/keep/keep.h"
#include "cli/launch/child.h"
#include "cli/launch/flags.h"
#include "cli/launch/installation.h"
#include "cli/launch/policy_file.h"
#include "cli/launch/preload.h"
#include "cli/launch/run_directory.h"
#include "cli/usage/usage.h"
#include "cli/verdict/outputs.h"
#include "common/options.h"
#include "common/reserve.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char help[] =
    "usage: spillway run [options] -- COMMAND [ARGUMENT ...]\n\n"
    "Runs COMMAND on this machine's GPU, with its memory managed by spillway. If it spills\n"
    "or fails, three lines at the end say what lacked, what held the memory and what to do.\n\n"
    "The exit code is that of COMMAND, or 128+n if signal n killed it, 127 if it was not\n"
    "found, 125 if spillway could not start it, 2 for bad usage.\n\n"
    "Options are written --name VALUE or --name=VALUE. Each is also an environment\n"
    "variable, SPILLWAY_NAME; spillway options lists them. [Defaults] are in brackets.\n";

static bool is_simulated(void)
{
    const char *preload = getenv("LD_PRELOAD");

    return preload != NULL && strstr(preload, "/sim/libcuda.so.") != NULL;
}

static bool may_say(void)
{
    return spw_option_get(SPW_OPT_SPILLWAY_SUMMARY, NULL, 0).word >= SPW_SUMMARY_SHORT;
}

/* Says that device and host share the machine's memory, which has `bytes`. */
static void tell_one_memory(const char *command, uint64_t bytes)
{
    if (bytes > 0 && may_say()) {
        spw_cli_complain(command,
                         "device and host share one memory of %s: nothing spills, and %s stay free "
                         "(--memory-reserve)",
                         spw_cli_size(bytes), spw_cli_size(spw_reserve_of(bytes)));
    }
}

/* Reports that blocks cannot move to the host on WSL2. */
static void tell_wsl(const char *command, bool wsl)
{
    if (wsl && may_say()) {
        spw_cli_complain(command,
                         "on WSL2 no block moves to the host: new blocks that do not fit go to "
                         "page-locked memory, and WSL2 often allows no more than 1 GiB of it "
                         "(spillway doctor)");
    }
}

/* Ends a run that spilled or failed with the lines that end a simulated run. */
static void report(int code)
{
    struct spw_cli_sim_result result;
    enum spw_cli_sim_outcome outcome;

    if (!may_say()) {
        return;
    }
    spw_cli_sim_result_read(/* real */ true, &result);
    outcome = spw_cli_sim_result_outcome(&result, code);
    if (outcome != SPW_CLI_SIM_UNUSED && outcome != SPW_CLI_SIM_FITS) {
        spw_cli_brief_print(&result, code, /* in_full */ false);
    }
    spw_cli_sim_result_fini(&result);
}

int spw_cli_command_run(int argc, char **argv)
{
    char library[PATH_MAX];
    char reason[256];
    struct spw_cli_flags flags;
    struct spw_cli_card card;
    bool started;
    int code = spw_cli_flags_read(argc, argv, SPW_CLI_RUN, help, &flags);

    if (code >= 0) {
        return code;
    }
    code = spw_cli_policy_prepare(argv[0], flags.policy);
    if (code != SPW_CLI_EXIT_OK) {
        return code;
    }
    code = spw_cli_page_prepare(argv[0], &flags);
    if (code != SPW_CLI_EXIT_OK) {
        return code;
    }
    if (!spw_cli_driver_check(reason, sizeof(reason), &card)) {
        spw_cli_complain(
            argv[0], "no usable GPU: %s; spillway sim runs a command on a simulated GPU", reason);
        return SPW_CLI_EXIT_CANNOT_START;
    }
    if (!spw_cli_installation_find(argv[0], "libspillway.so", library)) {
        return SPW_CLI_EXIT_CANNOT_START;
    }
    tell_one_memory(argv[0], card.one_memory);
    tell_wsl(argv[0], card.wsl);
    spw_cli_preload_add((const char *[]){library}, 1);
    /* The verdict of an outer `spillway sim` includes this run. */
    if (!is_simulated() || !spw_cli_run_directory_join()) {
        (void)spw_cli_run_directory_create(argv[0]);
    }
    if (flags.fit) {
        spw_cli_keep_begin(flags.command, card.text);
    }
    code = spw_cli_launch(argv[0], flags.command, &started);
    spw_cli_run_directory_finish();
    spw_cli_job_summary();
    if (!is_simulated()) {
        report(code);
    }
    if (flags.fit && started) {
        spw_cli_keep_end(code);
    }
    spw_cli_page_finish(argv[0], &flags, code);
    spw_cli_run_directory_remove();
    return code;
}
