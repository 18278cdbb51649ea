#include "policy/open.h"

#include "common/options.h"
#include "policy/decision.h"
#include "policy/find.h"
#include "policy/policy.h"
#include "policy/state.h"
#include "stats/stats.h"
#include "system/fd.h"
#include "system/log.h"
#include "system/room.h"
#include "system/start.h"

#include <limits.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void spw_policy_publish(struct spw_stats *stats)
{
    const struct spw_policy *policy = atomic_load(&spw_policy_state.policy);

    if (policy == NULL) {
        return;
    }
    (void)snprintf(stats->policy, sizeof(stats->policy), "%.*s", (int)sizeof(stats->policy) - 1,
                   spw_policy_state.file);
    for (size_t i = 0; i < policy->rule_count; i++) {
        (void)snprintf(stats->rule_names[i], sizeof(stats->rule_names[i]), "%s",
                       policy->rules[i].name);
    }
    spw_log(SPW_LOG_INFO, "policy %s is in force: %zu rules", spw_policy_state.file,
            policy->rule_count);
}

/* The policy that was read, or a complaint. */
struct reading {
    struct spw_policy *policy;
    char path[PATH_MAX];
    char complaint[1000];
    char folder[PATH_MAX], found[PATH_MAX]; /* scratch */
};

static void complain(const char *name, const char *base,
                     const struct spw_policy_complaints *complaints, struct reading *reading)
{
    struct spw_policy_complaint first = {
        .line = 1, .column = 1, .text = (char[]){"no memory to read the file"}};
    char buffer[SPW_POLICY_FILE_NAME];
    const char *nearest =
        access(reading->path, F_OK) == 0 ? NULL : spw_policy_nearest(name, base, buffer);

    if (complaints->count > 0) {
        first = complaints->items[0];
    }
    (void)snprintf(reading->complaint, sizeof(reading->complaint),
                   "%.200s:%zu:%zu: %.400s%s%s%s; the default policy is used (run spillway "
                   "policy check %.200s)",
                   name, first.line, first.column, first.text,
                   nearest != NULL ? " (did you mean \"" : "", nearest != NULL ? nearest : "",
                   nearest != NULL ? "\"?)" : "", name);
}

/* A pipe would stop the program until somebody writes to it. */
static bool is_pipe_or_device(const char *path)
{
    struct stat status;

    return stat(path, &status) == 0 && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode);
}

static void read_file(const char *name, const char *base, struct reading *ret_reading)
{
    struct spw_policy_complaints complaints = {0};
    struct spw_json json;

    ret_reading->policy = NULL;
    (void)spw_start_path(spw_policy_find(name, base, ret_reading->found), ret_reading->path,
                         sizeof(ret_reading->path));
    if (is_pipe_or_device(ret_reading->path)) {
        (void)snprintf(ret_reading->complaint, sizeof(ret_reading->complaint),
                       "%.200s: it is a pipe or a device, expected a file; the default policy is "
                       "used",
                       name);
        return;
    }
    if (!spw_policy_json_open(base, &json)) {
        (void)snprintf(
            ret_reading->complaint, sizeof(ret_reading->complaint),
            "%.200s: cannot read policies without libcjson.so.1; the default policy is used", name);
        return;
    }
    ret_reading->policy = spw_policy_load(ret_reading->path, &json, &complaints);
    spw_policy_json_close(&json);
    if (ret_reading->policy == NULL) {
        complain(name, base, &complaints, ret_reading);
    }
    spw_policy_complaints_fini(&complaints);
}

/* The path of the policy file, and its text. */
struct mention {
    char folder[PATH_MAX], found[PATH_MAX], path[PATH_MAX];
    char text[SPW_POLICY_FILE_BYTES + 1];
};

bool spw_policy_open_mentions(const char *word)
{
    const char *name = spw_option_get(SPW_OPT_SPILLWAY_POLICY, NULL, 0).text;
    struct mention SPW_ROOM *mention = NULL;
    ssize_t length;
    int fd;

    if (atomic_load(&spw_policy_state.policy) != NULL) {
        return true;
    }
    if (name == NULL || *name == '\0' || (mention = spw_room_take(sizeof(*mention))) == NULL) {
        return false;
    }
    (void)spw_start_path(
        spw_policy_find(name, spw_start_own_folder(mention->folder), mention->found), mention->path,
        sizeof(mention->path));
    fd = spw_fd_open_regular(mention->path);
    if (fd < 0) {
        return false;
    }
    length = read(fd, mention->text, SPW_POLICY_FILE_BYTES);
    (void)close(fd);
    return length > 0 && strstr(mention->text, word) != NULL;
}

/* Reports rules that match on properties which call sites do not record. */
static void check_sites(const struct spw_policy *policy)
{
    int sites = spw_option_get(SPW_OPT_SPILLWAY_SITES, NULL, 0).word;
    bool python = sites == SPW_SITES_PYTHON || sites == SPW_SITES_BOTH;
    bool native = sites == SPW_SITES_NATIVE || sites == SPW_SITES_BOTH;
    const char *missing = policy->uses_python && !python                ? "Python frames"
                          : policy->uses_native && !native              ? "native frames"
                          : policy->uses_tags && sites == SPW_SITES_OFF ? "tags"
                                                                        : NULL;

    if (missing != NULL) {
        spw_log_always("%s: rules match on %s, but SPILLWAY_SITES is %s", spw_policy_state.file,
                       missing, spw_option_environment("SPILLWAY_SITES"));
    }
}

static void install(const struct reading *reading)
{
    if (reading->policy == NULL) {
        spw_log_always("%s", reading->complaint);
        return;
    }
    memcpy(spw_policy_state.file, reading->path, sizeof(spw_policy_state.file));
    if (!spw_policy_decision_open(reading->policy, spw_policy_state.file)) {
        spw_log_always(
            "%s: no memory to note what it says of call sites; the default policy is used",
            spw_policy_state.file);
        spw_policy_state.file[0] = '\0';
        spw_policy_destroy(reading->policy);
        return;
    }
    check_sites(reading->policy);
}

/* Several threads may read the file at once: the first to finish puts it into force, while the
 * others wait. Putting it into force does not call the dynamic loader. */
void spw_policy_open_once(void)
{
    const char *name = spw_option_get(SPW_OPT_SPILLWAY_POLICY, NULL, 0).text;
    struct reading SPW_ROOM *reading = NULL;

    if (name == NULL || *name == '\0' || atomic_load(&spw_policy_state.was_read)) {
        return;
    }
    reading = spw_room_take(sizeof(*reading));
    if (reading == NULL) {
        return;
    }
    read_file(name, spw_start_own_folder(reading->folder), reading);
    if (!atomic_flag_test_and_set(&spw_policy_state.claimed)) {
        install(reading);
        atomic_store(&spw_policy_state.was_read, true);
        return;
    }
    spw_policy_destroy(reading->policy);
    while (!atomic_load(&spw_policy_state.was_read)) {
        (void)sched_yield();
    }
}
