#include "cli/policy_file.h"

#include "base/nearest.h"
#include "base/options.h"
#include "cli/command.h"
#include "cli/locate.h"
#include "policy/find.h"

#include <dirent.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SUFFIX ".json"

enum { MOST_SHIPPED = 32, NAME_BYTES = 64 };

static const struct spw_json linked = {.parse = cJSON_ParseWithLengthOpts, .destroy = cJSON_Delete};

/* The command's own folder, as the shipped policies are found from it; NULL when it is not known.
 */
static const char *own_folder(char buffer[PATH_MAX])
{
    return spw_locate_self(buffer) ? dirname(buffer) : NULL;
}

const char *spw_policy_path(const char *name, char buffer[PATH_MAX])
{
    char self[PATH_MAX];

    return spw_policy_find(name, own_folder(self), buffer);
}

/* Adds the names of the policies in a folder to the list, and returns its new length. The schema is
 * no policy. */
static size_t list_folder(const char *folder, char names[][NAME_BYTES], size_t count)
{
    DIR *listing = opendir(folder);
    struct dirent *entry;

    while (listing != NULL && (entry = readdir(listing)) != NULL && count < MOST_SHIPPED) {
        size_t length = strcspn(entry->d_name, ".");

        if (length > 0 && length < NAME_BYTES && strcmp(entry->d_name + length, SUFFIX) == 0) {
            snprintf(names[count++], NAME_BYTES, "%.*s", (int)length, entry->d_name);
        }
    }
    if (listing != NULL) {
        closedir(listing);
    }
    return count;
}

/* A name that is no file may be a mistyped one of a shipped policy. */
static void suggest(const char *name)
{
    char names[MOST_SHIPPED][NAME_BYTES];
    const char *candidates[MOST_SHIPPED];
    char self[PATH_MAX], folder[PATH_MAX];
    const char *base = own_folder(self);
    const char *nearest;
    size_t count = 0;

    for (size_t i = 0; base != NULL && i < spw_policy_folder_count; i++) {
        if (spw_policy_folder(i, base, folder)) {
            count = list_folder(folder, names, count);
        }
    }
    for (size_t i = 0; i < count; i++) {
        candidates[i] = names[i];
    }
    nearest = spw_nearest(name, 0, candidates, count);
    if (nearest != NULL) {
        fprintf(stderr, " (did you mean \"%s\"?)", nearest);
    }
}

static struct spw_policy *load(const char *name, struct spw_policy_complaints *ret_complaints)
{
    char buffer[PATH_MAX];

    return spw_policy_load(spw_policy_path(name, buffer), &linked, ret_complaints);
}

static void print_complaint(const char *name, const struct spw_policy_complaint *complaint)
{
    fprintf(stderr, "%s:%zu:%zu: %s", name, complaint->line, complaint->column, complaint->text);
    if (strchr(name, '/') == NULL && access(name, F_OK) != 0) {
        suggest(name);
    }
}

struct spw_policy *spw_policy_open(const char *name)
{
    struct spw_policy_complaints complaints;
    struct spw_policy *policy = load(name, &complaints);

    for (size_t i = 0; i < complaints.count; i++) {
        print_complaint(name, &complaints.items[i]);
        fputc('\n', stderr);
    }
    if (policy == NULL && complaints.count == 0) {
        fprintf(stderr, "%s:1:1: no memory to read the file\n", name);
    }
    spw_policy_complaints_fini(&complaints);
    return policy;
}

/* One line for the first of the complaints, or, where the file must be good, all of them. */
static void report_bad(const char *subcommand, const char *name, bool strict,
                       const struct spw_policy_complaints *complaints)
{
    for (size_t i = 0; i < complaints->count && (i == 0 || strict); i++) {
        fprintf(stderr, "spillway: %s: ", subcommand);
        print_complaint(name, &complaints->items[i]);
        fputs(strict ? "\n" : "; ", stderr);
    }
    if (strict) {
        spw_complain(subcommand, "policy %s cannot be used, and SPILLWAY_POLICY_STRICT is on",
                     name);
    } else {
        fprintf(stderr, "the default policy is used (spillway policy check %s says all)\n", name);
    }
}

bool spw_policy_prepare(const char *subcommand)
{
    const char *name = spw_option_get(SPW_OPT_SPILLWAY_POLICY, NULL, 0).text;
    bool strict = spw_option_get(SPW_OPT_SPILLWAY_POLICY_STRICT, NULL, 0).on;
    struct spw_policy_complaints complaints;
    struct spw_policy *policy;
    char buffer[PATH_MAX];
    char path[PATH_MAX];
    bool start;

    if (name == NULL) {
        return true;
    }
    policy = load(name, &complaints);
    start = policy != NULL || !strict;
    if (policy == NULL) {
        report_bad(subcommand, name, strict, &complaints);
        /* The program need not repeat it. */
        unsetenv(spw_option_row(SPW_OPT_SPILLWAY_POLICY)->name);
    } else {
        if (realpath(spw_policy_path(name, buffer), path) != NULL) {
            setenv(spw_option_row(SPW_OPT_SPILLWAY_POLICY)->name, path, 1);
        }
    }
    spw_policy_complaints_fini(&complaints);
    spw_policy_destroy(policy);
    return start;
}
