#include "cli/commands/list.h"

#include "common/nearest.h"
#include "common/options.h"
#include "cli/console/arguments.h"
#include "cli/console/messages.h"
#include "cli/launch/policy_file.h"
#include "cli/reports/policy_decision.h"
#include "cli/reports/policy_reference.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void print_help(void)
{
    fputs("usage: spillway policy check FILE ...\n"
          "       spillway policy explain FILE --site SITE\n"
          "       spillway policy schema\n"
          "       spillway policy keys\n\n"
          "  check    validate policy files; each error goes to stderr as FILE:LINE:COLUMN: TEXT.\n"
          "           The exit code is 0 when there is none, else 1\n"
          "  explain  show which rule of FILE applies to an allocation of call site SITE, and why\n"
          "           the rules before it do not; spillway sites --full prints call sites:\n"
          "           'python:train.py:forward:42; native:libtorch_cuda.so:at::native::gelu; "
          "size:12MiB'\n"
          "  schema   print the JSON Schema of policy files\n"
          "  keys     print the keys of policy files as Markdown tables\n\n"
          "FILE is a path, or the name of a policy that is installed with spillway. The file\n"
          "policies/README.md describes the language.\n",
          stdout);
}

static int bad_usage(const char *text)
{
    spw_cli_complain("policy", "%s (see spillway policy --help)", text);
    return SPW_CLI_EXIT_USAGE;
}

static int check(int argc, char **argv, const char *site)
{
    int code = SPW_CLI_EXIT_OK;

    if (argc == 0 || site != NULL) {
        return bad_usage("check: expected one FILE or more");
    }
    for (int i = 0; i < argc; i++) {
        struct spw_policy *policy = spw_cli_policy_open(argv[i]);

        code = policy != NULL ? code : SPW_CLI_EXIT_FINDINGS;
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
        return bad_usage("explain: expected FILE --site SITE");
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

static int schema(int argc, char **argv, const char *site)
{
    if (argc != 0 || site != NULL) {
        return bad_usage("schema: no arguments are expected");
    }
    spw_cli_policy_print_schema();
    return SPW_CLI_EXIT_OK;
}

static int keys(int argc, char **argv, const char *site)
{
    if (argc != 0 || site != NULL) {
        return bad_usage("keys: no arguments are expected");
    }
    spw_cli_policy_print_keys();
    return SPW_CLI_EXIT_OK;
}

/* Each gets the arguments behind its name, and the value of --site or NULL. */
static const struct {
    const char *name;
    int (*run)(int argc, char **argv, const char *site);
} parts[] = {{"check", check}, {"explain", explain}, {"schema", schema}, {"keys", keys}};

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
    spw_cli_complain("policy", "%s is not one of check, explain, schema, keys%s%s%s", argv[0],
                     nearest != NULL ? " (did you mean " : "", nearest != NULL ? nearest : "",
                     nearest != NULL ? "?)" : "");
    return SPW_CLI_EXIT_USAGE;
}

int spw_cli_command_policy(int argc, char **argv)
{
    enum { SITE = 256 };
    static const struct option options[] = {
        {"site", required_argument, NULL, SITE},
        SPW_CLI_HELP_OPTION,
        {0},
    };
    struct spw_cli_arguments arguments = {
        .command = argv[0], .argc = argc, .argv = argv, .options = options};
    char **operands = calloc((size_t)argc, sizeof(*operands));
    const char *site = NULL;
    int code = SPW_CLI_EXIT_USAGE;
    int count = 0;
    int found;

    if (operands == NULL) {
        spw_cli_complain("policy", "out of memory");
        return SPW_CLI_EXIT_FINDINGS;
    }
    while ((found = spw_cli_arguments_next(&arguments)) == SPW_CLI_ARGUMENT_OPERAND ||
           found == SITE) {
        if (found == SITE) {
            site = arguments.value;
        } else {
            operands[count++] = argv[arguments.next - 1];
        }
    }
    if (found == SPW_CLI_ARGUMENT_HELP) {
        print_help();
        code = SPW_CLI_EXIT_OK;
    } else if (found == SPW_CLI_ARGUMENT_END && count == 0) {
        code = bad_usage("expected check, explain, schema or keys");
    } else if (found == SPW_CLI_ARGUMENT_END) {
        code = run_part(count, operands, site);
    }
    free(operands);
    return code;
}
