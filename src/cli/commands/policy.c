#include "cli/commands/list.h"

#include "cli/console/arguments.h"
#include "cli/console/json.h"
#include "cli/console/messages.h"
#include "cli/keep/keep.h"
#include "cli/launch/policy_file.h"
#include "cli/policies/decision.h"
#include "common/nearest.h"
#include "common/options.h"
#include "common/size.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char help[] =
    "usage: spillway policy list\n"
    "       spillway policy check FILE ...\n"
    "       spillway policy explain FILE --site SITE\n"
    "       spillway policy explain FILE --stats STATS\n"
    "       spillway policy explain --fit [-- COMMAND [ARGUMENT ...]]\n"
    "       spillway policy forget --all | -- COMMAND [ARGUMENT ...]\n"
    "       spillway policy suggest STATS [--free SIZE] > my.json\n"
    "       spillway policy schema\n"
    "       spillway policy keys\n\n"
    "  list     print the policies that are installed with spillway, and when to use them\n"
    "  check    validate policy files; each error goes to stderr as FILE:LINE:COLUMN: TEXT.\n"
    "           The exit code is 0 when there is none, else 1\n"
    "  explain  show which rule of FILE applies to an allocation of call site SITE, and why\n"
    "           the rules before it do not; spillway sites --text prints call sites:\n"
    "           'python:train.py:forward:42; native:libtorch_cuda.so:at::native::gelu; "
    "size:12MiB'\n"
    "           With --stats: how much of the memory in a statistics file each rule gets.\n"
    "           With --fit: what spillway run --fit has chosen for COMMAND in this folder, on\n"
    "           any card; without COMMAND, for all\n"
    "  forget   remove what spillway run --fit has chosen for COMMAND in this folder, or --all\n"
    "  suggest  print a policy that frees device memory, from a statistics file. It places\n"
    "           memory on the host that is seldom used, with the smallest rule that is enough.\n"
    "           Without --free, SIZE is the memory that was missing in the last out-of-memory\n"
    "           report of the file, or the most memory that was spilled at a time\n"
    "  schema   print the JSON Schema of policy files\n"
    "  keys     print the keys of policy files as Markdown tables\n\n"
    "FILE is a path, or the name of a policy that is installed with spillway. The file\n"
    "policies/README.md describes the language.\n";

/* Reports a pattern that contains the name of a class, because the names of CPython's code objects
 * do not contain classes. Returns false for any other pattern. */
static bool tell_class(const char *file, const struct spw_policy_rule *rule, const char *pattern)
{
    const char *dot = strrchr(pattern, '.');

    if (dot == NULL) {
        return false;
    }
    fprintf(stderr,
            "%s:%zu:1: rule \"%s\": the function \"%s\" matches nothing, as call sites name "
            "functions without their class, expected \"%s\"",
            file, rule->line, rule->name, pattern, dot + 1);
    if (dot > pattern && dot[-1] != '>') { /* not for "f.<locals>.g" */
        fprintf(stderr,
                ", and for a module of PyTorch \"module_class\": \"%.*s\" beside \"python\"",
                (int)(dot - pattern), pattern);
    }
    fputc('\n', stderr);
    return true;
}

/* Reports all patterns that name a class, and returns their number. */
static int tell_classes(const char *file, const struct spw_policy *policy)
{
    int reported = 0;

    for (size_t i = 0; i < policy->rule_count; i++) {
        const struct spw_policy_list *list = &policy->rules[i].match.python;
        const struct spw_policy_python *conditions = list->items;

        for (size_t k = 0; k < list->count; k++) {
            for (size_t m = 0; m < conditions[k].function.count; m++) {
                reported +=
                    tell_class(file, &policy->rules[i], conditions[k].function.items[m].text);
            }
        }
    }
    return reported;
}

static int check(int argc, char **argv, const char *site)
{
    int code = SPW_CLI_EXIT_OK;

    if (argc == 0 || site != NULL) {
        return spw_cli_bad_usage("policy", "check: expected one FILE or more");
    }
    for (int i = 0; i < argc; i++) {
        struct spw_policy *policy = spw_cli_policy_open(argv[i]);

        if (policy == NULL || tell_classes(argv[i], policy) > 0) {
            code = SPW_CLI_EXIT_FINDINGS;
        }
        spw_policy_destroy(policy);
    }
    return code;
}

static int explain(int argc, char **argv, const char *text)
{
    char complaint[SPW_COMPLAINT_TEXT];
    struct spw_callsite_text *site;
    struct spw_policy *policy;
    int code = SPW_CLI_EXIT_FINDINGS;

    if (argc != 1 || text == NULL) {
        return spw_cli_bad_usage("policy", "explain: expected FILE --site SITE");
    }
    site = malloc(sizeof(*site));
    if (site == NULL || !spw_callsite_parse(text, site, complaint, sizeof(complaint))) {
        spw_cli_complain("policy", "explain: --site: %s",
                         site != NULL ? complaint : "out of memory");
        free(site);
        return SPW_CLI_EXIT_USAGE;
    }
    policy = spw_cli_policy_open(argv[0]);
    if (policy != NULL) {
        spw_cli_policy_explain(argv[0], policy, &site->site, &site->request);
        code = SPW_CLI_EXIT_OK;
    }
    spw_policy_destroy(policy);
    free(site);
    return code;
}

/* Returns an upper bound on the peak of spilled memory. *ret_device is the device with the highest
 * such peak. */
static uint64_t find_spilled(const cJSON *stats, int *ret_device)
{
    const cJSON *devices = spw_cli_json_list(stats, "devices"), *device;
    uint64_t most = 0;

    cJSON_ArrayForEach(device, devices)
    {
        uint64_t on_host = spw_cli_json_number(device, "host_peak_bytes");
        uint64_t spilled = spw_cli_json_number(device, "spilled_bytes") -
                           spw_cli_json_number(device, "paused_bytes");
        uint64_t lacked = on_host < spilled ? on_host : spilled; /* rules also place memory there */

        if (lacked > most) {
            most = lacked;
            *ret_device = (int)spw_cli_json_number(device, "ordinal");
        }
    }
    return most;
}

/* Finds the device and the number of bytes to free, from --free, from the file's last out-of-memory
 * report, or from the spilled bytes. If all three are missing, or if --free is not valid, writes a
 * line to stderr and returns false. */
static bool find_need(const struct spw_cli_sites_file *file, const char *path, const char *size,
                      int *ret_device, uint64_t *ret_bytes)
{
    const cJSON *oom = cJSON_GetObjectItemCaseSensitive(file->json, "oom");
    uint64_t missing = spw_cli_json_number(oom, "missing_bytes");
    bool percent = false;

    *ret_device = (int)spw_cli_json_number(oom, "device");
    *ret_bytes = missing > 0 ? missing : spw_cli_json_number(oom, "bytes");
    if (*ret_bytes == 0) {
        *ret_bytes = find_spilled(file->json, ret_device);
    }
    if (size != NULL &&
        (!spw_size_parse(size, ret_bytes, &percent) || percent || *ret_bytes == 0)) {
        spw_cli_complain("policy", "suggest: --free %s: expected a size, such as 2GiB", size);
        return false;
    }
    if (*ret_bytes == 0) {
        spw_cli_complain("policy",
                         "suggest: %s: the program did not run out of memory, and nothing was "
                         "spilled (expected --free SIZE)",
                         path);
        return false;
    }
    return true;
}

static int suggest(int argc, char **argv, const char *size)
{
    struct spw_cli_sites_file file;
    uint64_t bytes, freed = 0;
    cJSON *policy = NULL;
    int device;

    if (argc != 1) {
        return spw_cli_bad_usage("policy", "suggest: expected one statistics file");
    }
    if (!spw_cli_sites_file_load("policy", argv[0], /* need_sites */ true, &file)) {
        return SPW_CLI_EXIT_FINDINGS;
    }
    if (find_need(&file, argv[0], size, &device, &bytes)) {
        policy = spw_cli_policy_suggest(&file, device, bytes, &freed);
        if (policy == NULL) {
            spw_cli_complain("policy", "suggest: %s: no rule can name what device %d held", argv[0],
                             device);
        } else if (freed < bytes) {
            spw_cli_complain("policy", "suggest: all rules together free %s of %s",
                             spw_cli_size(freed), spw_cli_size(bytes));
        }
    }
    if (policy != NULL) {
        spw_cli_json_print(policy, /* one_line */ false);
    }
    spw_cli_sites_file_free(&file);
    return freed > 0 && freed >= bytes ? SPW_CLI_EXIT_OK : SPW_CLI_EXIT_FINDINGS;
}

static int explain_stats(int argc, char **argv, const char *stats)
{
    struct spw_cli_sites_file file;
    struct spw_policy *policy;

    if (argc != 1) {
        return spw_cli_bad_usage("policy", "explain: expected FILE --stats STATS");
    }
    policy = spw_cli_policy_open(argv[0]);
    if (policy == NULL || !spw_cli_sites_file_load("policy", stats, /* need_sites */ true, &file)) {
        spw_policy_destroy(policy);
        return SPW_CLI_EXIT_FINDINGS;
    }
    spw_cli_policy_print_usage(argv[0], policy, &file);
    spw_cli_sites_file_free(&file);
    spw_policy_destroy(policy);
    return SPW_CLI_EXIT_OK;
}

static int schema(int argc, char **argv, const char *site)
{
    if (argc != 0 || site != NULL) {
        return spw_cli_bad_usage("policy", "schema: no arguments are expected");
    }
    spw_cli_policy_print_schema();
    return SPW_CLI_EXIT_OK;
}

static int list(int argc, char **argv, const char *site)
{
    static char names[SPW_CLI_POLICIES][SPW_CLI_POLICY_NAME];
    size_t count = spw_cli_policy_installed(/* moving */ false, names);

    if (argc != 0 || site != NULL) {
        return spw_cli_bad_usage("policy", "list: no arguments are expected");
    }
    for (size_t i = 0; i < count; i++) {
        struct spw_policy *policy = spw_cli_policy_open(names[i]);
        const char *const *lines = policy != NULL ? policy->file.comment.items : NULL;

        printf("%s%s\n", i > 0 ? "\n" : "", names[i]);
        for (size_t k = 0; policy != NULL && k < policy->file.comment.count; k++) {
            printf("    %s\n", lines[k]);
        }
        spw_policy_destroy(policy);
    }
    if (count == 0) {
        spw_cli_complain("policy", "list: no policies are installed");
    }
    return count > 0 ? SPW_CLI_EXIT_OK : SPW_CLI_EXIT_FINDINGS;
}

static int keys(int argc, char **argv, const char *site)
{
    if (argc != 0 || site != NULL) {
        return spw_cli_bad_usage("policy", "keys: no arguments are expected");
    }
    spw_cli_policy_print_keys();
    return SPW_CLI_EXIT_OK;
}

static int forget(int argc, char **argv, const char *site)
{
    if (argc == 0 || site != NULL) {
        return spw_cli_bad_usage("policy", "forget: expected -- and a COMMAND, or --all");
    }
    return spw_cli_keep_forget(argv);
}

/* `run` gets the arguments that follow the name, and the value of --site (for suggest, the value of
 * --free) or NULL. */
static const struct {
    const char *name;
    int (*run)(int argc, char **argv, const char *site);
} parts[] = {{"list", list},       {"check", check},   {"explain", explain}, {"forget", forget},
             {"suggest", suggest}, {"schema", schema}, {"keys", keys}};

enum { PART_COUNT = sizeof(parts) / sizeof(*parts) };

static int run_part(int argc, char **argv, const char *site)
{
    const char *names[PART_COUNT];
    const char *nearest;

    for (int i = 0; i < PART_COUNT; i++) {
        names[i] = parts[i].name;
        if (strcmp(parts[i].name, argv[0]) == 0) {
            return parts[i].run(argc - 1, argv + 1, site);
        }
    }
    nearest = spw_nearest(argv[0], /* prefix_length */ 0, names, PART_COUNT);
    spw_cli_complain("policy",
                     "%s is not one of list, check, explain, forget, suggest, schema, keys%s%s%s",
                     argv[0], nearest != NULL ? " (did you mean " : "",
                     nearest != NULL ? nearest : "", nearest != NULL ? "?)" : "");
    return SPW_CLI_EXIT_USAGE;
}

struct settings {
    char **operands;
    int count;
    const char *site, *size, *stats; /* NULL: not given */
    bool fit, all;
};

static bool take_operand(const struct spw_cli_arguments *from)
{
    struct settings *settings = from->settings;

    settings->operands[settings->count++] = from->argv[from->next - 1];
    return true;
}

/* `explain --fit` and `forget --all`. */
static int run_on_kept(const struct settings *settings, bool explains)
{
    bool forgets = strcmp(settings->operands[0], "forget") == 0;

    if (settings->fit && (!explains || settings->site != NULL || settings->stats != NULL)) {
        return spw_cli_bad_usage("policy",
                                 "--fit is an option of explain, and excludes --site and --stats");
    }
    if (settings->all && (!forgets || settings->count > 1)) {
        return spw_cli_bad_usage("policy", "--all is an option of forget, and excludes a COMMAND");
    }
    return settings->all
               ? spw_cli_keep_forget(NULL)
               : spw_cli_keep_explain(settings->count > 1 ? settings->operands + 1 : NULL);
}

static int run_with(const struct settings *settings)
{
    bool suggests = strcmp(settings->operands[0], "suggest") == 0;
    bool explains = strcmp(settings->operands[0], "explain") == 0;

    if (settings->fit || settings->all) {
        return run_on_kept(settings, explains);
    }

    if (settings->size != NULL && !suggests) {
        return spw_cli_bad_usage("policy", "--free is an option of suggest");
    }
    if (settings->stats != NULL && (!explains || settings->site != NULL)) {
        return spw_cli_bad_usage("policy", "--stats is an option of explain, and excludes --site");
    }
    if (settings->site != NULL && suggests) {
        return spw_cli_bad_usage("policy", "suggest: --site is not expected");
    }
    if (settings->stats != NULL) {
        return explain_stats(settings->count - 1, settings->operands + 1, settings->stats);
    }
    return run_part(settings->count, settings->operands,
                    suggests ? settings->size : settings->site);
}

int spw_cli_command_policy(int argc, char **argv)
{
    struct settings settings = {.operands = calloc((size_t)argc + 1, sizeof(*settings.operands))};
    const struct spw_cli_option options[] = {
        {"", .take = take_operand},
        {"site", .text = &settings.site},
        {"free", .text = &settings.size},
        {"stats", .text = &settings.stats},
        {"fit", .given = &settings.fit},
        {"all", .given = &settings.all},
        {0},
    };
    int code;

    if (settings.operands == NULL) {
        spw_cli_complain("policy", "out of memory");
        return SPW_CLI_EXIT_FINDINGS;
    }
    code = spw_cli_arguments_read(argc, argv, options, help, &settings);
    if (code < 0) {
        code = settings.count == 0
                   ? spw_cli_bad_usage(
                         "policy", "expected list, check, explain, forget, suggest, schema or keys")
                   : run_with(&settings);
    }
    free(settings.operands);
    return code;
}
