#include "cli/launch/policy_file.h"

#include "cli/console/messages.h"
#include "cli/launch/installation.h"
#include "common/options.h"
#include "policy/find.h"

#include <dirent.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct spw_json linked_json = {.parse = cJSON_ParseWithLengthOpts,
                                            .destroy = cJSON_Delete};

/* The command's folder, to find installed policies; Returns NULL if it is not known. */
static const char *own_folder(char buffer[PATH_MAX])
{
    return spw_cli_installation_self(buffer) ? dirname(buffer) : NULL;
}

/* Returns the path of the installed policy with this name. If there is no such policy, returns the
 * name itself. */
static const char *policy_path(const char *name, char buffer[PATH_MAX])
{
    char self[PATH_MAX];

    return spw_policy_find(name, own_folder(self), buffer);
}

/* Returns true for the file name of a policy. With `moving`, excludes observe.json, because this
 * policy moves no memory. */
static bool is_policy(const char *file, bool moving)
{
    size_t length = strlen(file), ending = strlen(".json");

    return length > ending && length < SPW_CLI_POLICY_NAME && file[0] != '.' &&
           strcmp(file + length - ending, ".json") == 0 &&
           strchr(file, '.') == file + length - ending &&
           (!moving || strcmp(file, "observe.json") != 0);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(a, b);
}

size_t spw_cli_policy_installed(bool moving, char ret_names[SPW_CLI_POLICIES][SPW_CLI_POLICY_NAME])
{
    char path[PATH_MAX];
    const struct dirent *entry;
    size_t count = 0;
    DIR *folder;

    if (policy_path("observe", path) != path) {
        return 0; /* no policies are installed */
    }
    folder = opendir(dirname(path));
    while (folder != NULL && count < SPW_CLI_POLICIES && (entry = readdir(folder)) != NULL) {
        if (is_policy(entry->d_name, moving)) {
            (void)snprintf(ret_names[count++], SPW_CLI_POLICY_NAME, "%.*s",
                           (int)(strlen(entry->d_name) - strlen(".json")), entry->d_name);
        }
    }
    if (folder != NULL) {
        closedir(folder);
    }
    qsort(ret_names, count, SPW_CLI_POLICY_NAME, by_name);
    return count;
}

static struct spw_policy *load(const char *name, struct spw_policy_complaints *ret_complaints)
{
    char buffer[PATH_MAX];

    return spw_policy_load(policy_path(name, buffer), &linked_json, ret_complaints);
}

/* Loads a policy. Rejects a pipe or a device, because every process will read the file again. */
static struct spw_policy *load_for_processes(const char *name,
                                             struct spw_policy_complaints *ret_complaints)
{
    char buffer[PATH_MAX];
    struct stat status;

    if (stat(policy_path(name, buffer), &status) != 0 || S_ISREG(status.st_mode) ||
        S_ISDIR(status.st_mode)) {
        return load(name, ret_complaints);
    }
    *ret_complaints =
        (struct spw_policy_complaints){.items = calloc(1, sizeof(*ret_complaints->items))};
    if (ret_complaints->items != NULL) {
        ret_complaints->items[0] = (struct spw_policy_complaint){
            .line = 1,
            .column = 1,
            .text = strdup("it is a pipe or a device, but every process of the run reads it, "
                           "expected a file")};
        ret_complaints->count = ret_complaints->items[0].text != NULL;
    }
    return NULL;
}

static void print_complaint(const char *name, const struct spw_policy_complaint *complaint)
{
    char self[PATH_MAX], buffer[SPW_POLICY_FILE_NAME];
    const char *nearest =
        access(name, F_OK) == 0 ? NULL : spw_policy_nearest(name, own_folder(self), buffer);

    spw_cli_print(stderr, "%s:%zu:%zu: %s", name, complaint->line, complaint->column,
                  complaint->text);
    if (nearest != NULL) {
        spw_cli_print(stderr, " (did you mean \"%s\"?)", nearest);
    }
}

struct spw_policy *spw_cli_policy_open(const char *name)
{
    struct spw_policy_complaints complaints;
    struct spw_policy *policy = load(name, &complaints);

    for (size_t i = 0; i < complaints.count; i++) {
        print_complaint(name, &complaints.items[i]);
        fputc('\n', stderr);
    }
    if (policy == NULL && complaints.count == 0) {
        spw_cli_print(stderr, "%s:1:1: out of memory\n", name);
    }
    spw_policy_complaints_fini(&complaints);
    return policy;
}

static void report_bad(const char *command, const char *name, bool strict,
                       const struct spw_policy_complaints *complaints)
{
    for (size_t i = 0; i < complaints->count && (i == 0 || strict); i++) {
        fprintf(stderr, "spillway: %s: ", command);
        print_complaint(name, &complaints->items[i]);
        fputs(strict ? "\n" : "; ", stderr);
    }
    if (complaints->count == 0) {
        spw_cli_print(stderr, "spillway: %s: %s:1:1: out of memory%s", command, name,
                      strict ? "\n" : "; ");
    }
}

int spw_cli_policy_prepare(const char *command, bool by_flag)
{
    const char *name = spw_option_get(SPW_OPT_SPILLWAY_POLICY, NULL, 0).text;
    bool strict = spw_option_get(SPW_OPT_SPILLWAY_POLICY_STRICT, NULL, 0).on;
    struct spw_policy_complaints complaints;
    struct spw_policy *policy;
    char buffer[PATH_MAX];
    char path[PATH_MAX];
    int code = SPW_CLI_EXIT_OK;

    if (name == NULL) {
        return SPW_CLI_EXIT_OK;
    }
    policy = load_for_processes(name, &complaints);
    if (policy != NULL) {
        if (realpath(policy_path(name, buffer), path) != NULL) {
            setenv(spw_option_row(SPW_OPT_SPILLWAY_POLICY)->name, path, 1);
        }
    } else {
        report_bad(command, name, strict || by_flag, &complaints);
        if (by_flag) {
            code = SPW_CLI_EXIT_USAGE;
        } else if (strict) {
            spw_cli_complain(command, "policy %s is not valid, and SPILLWAY_POLICY_STRICT is on",
                             name);
            code = SPW_CLI_EXIT_CANNOT_START;
        } else {
            spw_cli_print(stderr, "the default policy is used (see spillway policy check %s)\n",
                          name);
            /* Otherwise the program would report the errors again. */
            unsetenv(spw_option_row(SPW_OPT_SPILLWAY_POLICY)->name);
        }
    }
    spw_policy_complaints_fini(&complaints);
    spw_policy_destroy(policy);
    return code;
}
