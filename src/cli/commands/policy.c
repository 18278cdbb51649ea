#include "cli/commands/list.h"
#include "cli/console/messages.h"

#include "common/nearest.h"
#include "common/options.h"
#include "cli/reports/policy_decision.h"
#include "cli/launch/policy_file.h"
#include "cli/reports/policy_reference.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void print_help(void)
{
    fputs(
        "usage: spillway policy check FILE ...\n"
        "       spillway policy explain FILE --site SITE\n"
        "       spillway policy schema\n"
        "       spillway policy keys\n\n"
        "check    0 and silent when every FILE is a good policy; else 1, with each problem on\n"
        "         stderr as FILE:LINE:COLUMN: what, what was expected\n"
        "explain  says which rule of FILE decides an allocation of call site SITE, and why those\n"
        "         before it do not; SITE is what spillway sites prints:\n"
        "         'python:train.py:forward:42; native:libtorch_cuda.so:at::native::gelu; "
        "size:12MiB'\n"
        "schema   prints the JSON Schema of policy files\n"
        "keys     prints the keys of policy files as tables\n\n"
        "FILE is a path, or the name of a policy that ships with spillway. policies/README.md\n"
        "describes the language.\n",
        stdout);
}

static int bad_usage(const char *what)
{
    spw_cli_complain("policy", "%s (spillway policy --help says more)", what);
    return SPW_CLI_EXIT_USAGE;
}

static int check(int argc, char **argv)
{
    int code = SPW_CLI_EXIT_OK;

    if (argc < 2) {
        return bad_usage("check: expected a FILE");
    }
    for (int i = 1; i < argc; i++) {
        struct spw_policy *policy = spw_cli_policy_open(argv[i]);

        code = policy != NULL ? code : SPW_CLI_EXIT_FINDINGS;
        spw_policy_destroy(policy);
    }
    return code;
}

/* FILE --site SITE, in any order; --site=SITE as well. */
static bool explain_arguments(int argc, char **argv, const char **ret_file, const char **ret_site)
{
    *ret_file = NULL;
    *ret_site = NULL;
    for (int i = 1; i < argc; i++) {
        if (strncmp(argv[i], "--site=", 7) == 0 && *ret_site == NULL) {
            *ret_site = argv[i] + 7;
        } else if (strcmp(argv[i], "--site") == 0 && i + 1 < argc && *ret_site == NULL) {
            *ret_site = argv[++i];
        } else if (*argv[i] != '-' && *ret_file == NULL) {
            *ret_file = argv[i];
        } else {
            return false;
        }
    }
    return *ret_file != NULL && *ret_site != NULL;
}

static int explain(int argc, char **argv)
{
    char complaint[SPW_COMPLAINT_TEXT];
    struct spw_callsite_text *site;
    struct spw_policy *policy;
    const char *file;
    const char *text;
    int code = SPW_CLI_EXIT_FINDINGS;

    if (!explain_arguments(argc, argv, &file, &text)) {
        return bad_usage("explain: expected FILE --site SITE");
    }
    site = malloc(sizeof(*site));
    if (site == NULL || !spw_callsite_parse(text, site, complaint, sizeof(complaint))) {
        spw_cli_complain("policy", "explain: --site: %s", site != NULL ? complaint : "no memory");
        free(site);
        return SPW_CLI_EXIT_USAGE;
    }
    policy = spw_cli_policy_open(file);
    if (policy != NULL) {
        spw_cli_policy_explain(file, policy, &site->site, &site->request);
        code = SPW_CLI_EXIT_OK;
    }
    spw_policy_destroy(policy);
    free(site);
    return code;
}

static int schema(int argc, char **argv)
{
    if (argc != 1) {
        return bad_usage("schema: no arguments are expected");
    }
    spw_cli_policy_print_schema();
    return SPW_CLI_EXIT_OK;
}

static int keys(int argc, char **argv)
{
    if (argc != 1) {
        return bad_usage("keys: no arguments are expected");
    }
    spw_cli_policy_print_keys();
    return SPW_CLI_EXIT_OK;
}

static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
} parts[] = {{"check", check}, {"explain", explain}, {"schema", schema}, {"keys", keys}};

enum { PART_COUNT = sizeof(parts) / sizeof(*parts) };

int spw_cli_command_policy(int argc, char **argv)
{
    const char *names[PART_COUNT];
    const char *nearest;

    if (argc < 2) {
        return bad_usage("expected check, explain, schema or keys");
    }
    for (int i = 1; i < argc; i++) {
        if (spw_cli_is_help(argv[i])) {
            print_help();
            return SPW_CLI_EXIT_OK;
        }
    }
    for (int i = 0; i < PART_COUNT; i++) {
        names[i] = parts[i].name;
        if (strcmp(parts[i].name, argv[1]) == 0) {
            return parts[i].run(argc - 1, argv + 1);
        }
    }
    nearest = spw_nearest(argv[1], 0, names, PART_COUNT);
    spw_cli_complain("policy", "%s is not one of check, explain, schema, keys%s%s%s", argv[1],
                     nearest != NULL ? " (did you mean " : "", nearest != NULL ? nearest : "",
                     nearest != NULL ? "?)" : "");
    return SPW_CLI_EXIT_USAGE;
}
