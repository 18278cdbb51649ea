#include "cli/commands/list.h"
#include "cli/commands/page.h"
#include "cli/console/json.h"
#include "cli/console/messages.h"

#include "cli/cudnn/choice.h"
#include "cli/cudnn/server.h"
#include "cli/launch/child.h"
#include "cli/launch/flags.h"
#include "cli/launch/job.h"
#include "cli/launch/policy_file.h"
#include "cli/launch/preload.h"
#include "cli/launch/run_directory.h"
#include "cli/launch/world.h"
#include "cli/verdict/need.h"
#include "cli/verdict/outputs.h"
#include "common/options.h"
#include "gpu/profile.h"

#include <stdio.h>
#include <stdlib.h>

static const char help[] =
    "usage: spillway sim [options] -- COMMAND [ARGUMENT ...]\n\n"
    "Runs COMMAND on a simulated GPU, with its memory managed by spillway. Most kernels\n"
    "compute nothing, so ignore the numbers that COMMAND prints; memory is as on a real GPU\n"
    "of that size. Afterwards a verdict says if COMMAND fits and how much memory it needed.\n"
    "\n"
    "The exit code is as for spillway run; with --compare, that of the run with the pool.\n\n"
    "Options are written --name VALUE or --name=VALUE. Each is also an environment\n"
    "variable; spillway options lists them. [Defaults] are in brackets.\n";

/* Prints the simulated GPU and its memory. If the option is unusable, the default applies, as in
 * the driver. */
static void announce(void)
{
    struct spw_option_value memory = spw_option_get(SPW_OPT_SPILLWAY_SIM_MEMORY, NULL, 0);
    const struct spw_gpu_profile *profile = spw_cli_cards_profile();
    uint64_t own = (uint64_t)profile->memory_mib << 20;

    fprintf(
        stderr,
        "spillway: simulated GPU (%s, %s%s): ignore the numbers that the program prints; memory "
        "figures are exact\n",
        profile->id, spw_cli_size(memory.set ? spw_option_bytes(&memory, own) : own),
        spw_gpu_profile_sharing(profile).one_memory ? ", one memory with the host" : "");
}

/* Returns the exit code of the command, or 1 if the verdict does not meet --require. */
static int judge(const char *command, const struct spw_cli_sim_result *result, int code)
{
    int required = spw_option_get(SPW_OPT_SPILLWAY_SIM_REQUIRE, NULL, 0).word;
    enum spw_cli_sim_outcome outcome = spw_cli_sim_result_outcome(result, code);
    bool good = outcome == SPW_CLI_SIM_FITS && spw_cli_need_fits(result);

    good |= required == SPW_REQUIRE_SPILL &&
            (outcome == SPW_CLI_SIM_FITS || outcome == SPW_CLI_SIM_SPILLS);
    if (code != 0 || good || required == SPW_REQUIRE_END) {
        return code;
    }
    spw_cli_complain(command, "--require=%s is not met, so the exit code is 1",
                     required == SPW_REQUIRE_FIT ? "fit" : "spill");
    return SPW_CLI_EXIT_FINDINGS;
}

/* One call of `spillway sim`: its arguments, and the runs so far. */
struct simulation {
    const char *command; /* for messages */
    char **arguments;
    struct spw_cli_world world;
    struct spw_cli_rank_row rows[SPW_CLI_WORLD_RANKS]; /* of the ranks that were run */
    size_t row_count;
    bool verbose;
    int program_code; /* of the first run that failed, or 0 */
    cJSON *json;      /* to be written at the end; NULL: none */
};

/* Keeps the verdict for the file of --json, either alone or in the list of ranks. */
static void keep_json(struct simulation *simulation, cJSON *verdict, size_t index)
{
    const struct spw_cli_world *world = &simulation->world;

    if (world->size == 0) {
        simulation->json = verdict;
        return;
    }
    if (simulation->json == NULL) {
        simulation->json = cJSON_CreateObject();
        cJSON_AddNumberToObject(simulation->json, "world", world->size);
        (void)cJSON_AddArrayToObject(simulation->json, "ranks");
    }
    cJSON_AddNumberToObject(verdict, "rank", world->ranks[index]);
    cJSON_AddItemToArray(cJSON_GetObjectItem(simulation->json, "ranks"), verdict);
}

static int report(struct simulation *simulation, size_t index, int code)
{
    struct spw_cli_sim_result result;

    spw_cli_sim_result_read(/* real */ false, &result);
    spw_cli_verdict_print(&result, code, simulation->verbose);
    keep_json(simulation, spw_cli_verdict_json(&result, code), index);
    if (simulation->world.size > 0) {
        simulation->rows[simulation->row_count++] =
            spw_cli_rank_row_of(simulation->world.ranks[index], &result, code);
    }
    code = judge(simulation->command, &result, code);
    spw_cli_sim_result_fini(&result);
    return code;
}

static int run_once(struct simulation *simulation, size_t index)
{
    bool started;
    int code;

    if (!spw_cli_run_directory_create(simulation->command)) {
        spw_cli_complain(simulation->command, "without that folder there is no verdict");
        return spw_cli_launch(simulation->command, simulation->arguments, NULL);
    }
    spw_cli_cudnn_server_start();
    spw_cli_progress_start();
    code =
        spw_cli_launch_code(spw_cli_launch(simulation->command, simulation->arguments, &started));
    spw_cli_run_directory_finish();
    simulation->program_code = simulation->program_code == 0 ? code : simulation->program_code;
    if (started) {
        code = report(simulation, index, code);
    }
    spw_cli_run_directory_remove();
    return code;
}

/* Runs each rank. Returns the first exit code that is not 0, or 0. */
static int run_ranks(struct simulation *simulation)
{
    const struct spw_cli_world *world = &simulation->world;
    int signal_number;
    int first = 0;

    for (size_t i = 0; i < world->count; i++) {
        int code;

        fprintf(stderr, "spillway: rank %u of %u; the others are absent\n", world->ranks[i],
                world->size);
        if (!spw_cli_world_select(simulation->command, world, i)) {
            return SPW_CLI_EXIT_CANNOT_START;
        }
        code = run_once(simulation, i);
        first = first == 0 ? code : first;
        if (spw_cli_launch_was_interrupted(&signal_number)) {
            break;
        }
    }
    if (simulation->row_count > 1) {
        spw_cli_ranks_print(simulation->rows, simulation->row_count, world->size);
    }
    return first;
}

static int run(struct simulation *simulation)
{
    const char *path = spw_option_get(SPW_OPT_SPILLWAY_SIM_JSON, NULL, 0).text;
    int code = simulation->world.size > 0 ? run_ranks(simulation) : run_once(simulation, 0);

    if (path != NULL && simulation->json != NULL) {
        if (!spw_cli_json_save(simulation->command, simulation->json, path) && code == 0) {
            code = SPW_CLI_EXIT_FINDINGS;
        }
    } else {
        cJSON_Delete(simulation->json);
    }
    return code;
}

int spw_cli_command_sim(int argc, char **argv)
{
    static struct simulation simulation;
    struct spw_cli_flags flags;
    int code = spw_cli_flags_read(argc, argv, SPW_CLI_SIM, help, &flags);

    if (code >= 0) {
        return code;
    }
    if (flags.list_profiles) {
        spw_cli_cards_print();
        return SPW_CLI_EXIT_OK;
    }
    if (flags.no_pool && flags.pool_option != SPW_OPT_COUNT) {
        char name[SPW_CLI_FLAG_NAME];

        spw_cli_complain(argv[0], "--%s is an option of the pool, and --no-pool runs without it",
                         spw_cli_flag_name(flags.pool_option, name));
        return SPW_CLI_EXIT_USAGE;
    }
    if (flags.no_pool && flags.compare) {
        spw_cli_complain(argv[0], "--compare also runs the command with the pool, which --no-pool "
                                  "excludes");
        return SPW_CLI_EXIT_USAGE;
    }
    code = spw_cli_page_prepare(argv[0], &flags);
    if (code != SPW_CLI_EXIT_OK) {
        return code;
    }
    if (!spw_cli_world_read(argv[0], flags.command, &simulation.world)) {
        return SPW_CLI_EXIT_USAGE;
    }
    if (flags.compare && simulation.world.count > 1) {
        spw_cli_complain(argv[0], "--compare takes one rank (expected --rank 0)");
        return SPW_CLI_EXIT_USAGE;
    }
    code = flags.no_pool ? SPW_CLI_EXIT_OK : spw_cli_policy_prepare(argv[0], flags.policy);
    if (code != SPW_CLI_EXIT_OK) {
        return code;
    }
    if (!spw_cli_cudnn_choose_for_runs(argv[0])) {
        return SPW_CLI_EXIT_USAGE;
    }
    spw_cli_launch_end_within(SPW_CLI_LAUNCH_GRACE);
    spw_cli_job_set_devices(flags.command);
    if (flags.compare) {
        if (!spw_cli_world_select(argv[0], &simulation.world, 0)) {
            return SPW_CLI_EXIT_CANNOT_START;
        }
        announce();
        return spw_cli_compare(argv[0], flags.command, spw_cli_sim_libraries_select);
    }
    if (!spw_cli_sim_libraries_select(argv[0], !flags.no_pool)) {
        return SPW_CLI_EXIT_CANNOT_START;
    }
    announce();
    /* The summary need not show the peaks, because the verdict shows them. */
    setenv(spw_option_row(SPW_OPT_SPILLWAY_SUMMARY)->name, "rules", /* replace */ 0);
    simulation.verbose = flags.verbose;
    simulation.command = argv[0];
    simulation.arguments = flags.command;
    code = run(&simulation);
    spw_cli_page_finish(argv[0], &flags, simulation.program_code);
    return code;
}
