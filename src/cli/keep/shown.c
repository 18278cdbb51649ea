/* Shows and forgets kept choices, for `spillway policy`. */
#include "cli/keep/keep.h"

#include "cli/console/messages.h"
#include "cli/keep/key.h"
#include "cli/keep/store.h"
#include "cli/launch/policy_file.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void print_rule(const struct spw_policy_rule *rule)
{
    const struct spw_policy_globs *modules = &rule->match.module;
    const char *const *lines = rule->comment.items;

    spw_cli_print(stdout, "    rule %s", rule->name);
    for (size_t i = 0; i < modules->count; i++) {
        spw_cli_print(stdout, "%s%s", i == 0 ? ": " : ", ", modules->items[i].text);
    }
    puts("");
    for (size_t i = 0; i < rule->comment.count; i++) {
        spw_cli_print(stdout, "        %s\n", lines[i]);
    }
}

static void print_kept(const char *path, void *context)
{
    const char *end = strrchr(path, '.');
    struct spw_policy *policy =
        strcmp(end != NULL ? end : path, ".json") == 0 ? spw_cli_policy_open(path) : NULL;
    const char *const *lines = policy != NULL ? policy->file.comment.items : NULL;
    size_t *count = context;

    if (policy == NULL) {
        return;
    }
    (*count)++;
    spw_cli_print(stdout, "%s\n", path);
    for (size_t i = 0; i < policy->file.comment.count; i++) {
        spw_cli_print(stdout, "    %s\n", lines[i]);
    }
    for (size_t i = 0; i < policy->rule_count; i++) {
        print_rule(&policy->rules[i]);
    }
    spw_policy_destroy(policy);
}

static void remove_kept(const char *path, void *context)
{
    size_t *count = context;

    if (unlink(path) == 0) {
        spw_cli_print(stdout, "removed: %s\n", path);
        (*count)++;
    }
}

/* Visits the files of a command. Returns the exit code. */
static int visit(char *const *arguments, void (*take)(const char *path, void *context))
{
    char folder[PATH_MAX], current[PATH_MAX], why[SPW_CLI_KEEP_WHY];
    uint64_t command = 0;
    size_t count = 0;

    if (arguments != NULL && getcwd(current, sizeof(current)) != NULL) {
        command = spw_cli_keep_command(arguments, current);
    }
    if (spw_cli_keep_folder(/* make */ false, folder, why)) {
        spw_cli_kept_each(folder, command, take, &count);
    }
    if (count == 0) {
        spw_cli_complain("policy", "nothing is kept%s%s%s",
                         arguments != NULL ? " for this command in this folder" : "",
                         *why != '\0' ? ": " : "", why);
    }
    return count > 0 ? SPW_CLI_EXIT_OK : SPW_CLI_EXIT_FINDINGS;
}

int spw_cli_keep_explain(char *const *arguments)
{
    return visit(arguments, print_kept);
}

int spw_cli_keep_forget(char *const *arguments)
{
    return visit(arguments, remove_kept);
}
