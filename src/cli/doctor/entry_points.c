#include "cli/doctor/tables.h"

#include "cli/console/json.h"
#include "cli/doctor/entry_point_child.h"
#include "cli/launch/installation.h"
#include "cli/launch/preload.h"
#include "common/options.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* The result of a child: the line that it printed, and counters from its statistics file. */
struct trial {
    char said[128];
    bool counted;
    uint64_t allocs;
    uint64_t frees;
    uint64_t passed;
    uint64_t missed;
};

/* Removes the user's settings, so that the child tests spillway with its defaults. */
static void forget_settings(void)
{
    for (int i = 0; i < SPW_OPT_COUNT; i++) {
        const struct spw_option_row *row = spw_option_row((enum spw_option)i);

        if (row->scope != SPW_SCOPE_SIM) {
            unsetenv(row->name);
        }
    }
    unsetenv("SPILLWAY_RUN_DIR");
}

static void be_child(const char *self, const char *library, const char *stats,
                     enum spw_cli_entry_point entry_point, int out)
{
    forget_settings();
    setenv("SPILLWAY_SUMMARY", "off", 1);
    setenv("SPILLWAY_STATS", stats, 1);
    spw_cli_preload_add(&library, 1);
    dup2(out, STDOUT_FILENO);
    execl(self, self, "_entry-point", spw_cli_entry_points[entry_point].word, (char *)NULL);
    _exit(127);
}

static void read_line(int fd, char *text, size_t capacity)
{
    size_t used = 0;
    ssize_t length;

    while (used + 1 < capacity &&
           ((length = read(fd, text + used, capacity - 1 - used)) > 0 || errno == EINTR)) {
        used += length > 0 ? (size_t)length : 0;
        if (length == 0) {
            break;
        }
    }
    text[used] = '\0';
    text[strcspn(text, "\n")] = '\0';
}

/* Reads the counters of device 0 from the child's statistics file, and removes the file. */
static void read_counters(const char *path, struct trial *trial)
{
    const cJSON *device;
    cJSON *root = NULL;

    (void)spw_cli_json_read(path, &root);
    unlink(path);
    device = cJSON_GetArrayItem(spw_cli_json_list(root, "devices"), 0);
    if (device != NULL) {
        trial->counted = true;
        trial->allocs = spw_cli_json_number(device, "allocs");
        trial->frees = spw_cli_json_number(device, "frees");
        trial->passed = spw_cli_json_number(device, "passed_allocs");
        trial->missed = spw_cli_json_number(device, "runtime_missed");
    }
    cJSON_Delete(root);
}

static bool run_child(const char *self, const char *library, const char *stats,
                      enum spw_cli_entry_point entry_point, struct trial *trial)
{
    int status = 0;
    int out[2];
    pid_t pid;

    if (pipe2(out, O_CLOEXEC) != 0) {
        return false;
    }
    pid = fork();
    if (pid == 0) {
        be_child(self, library, stats, entry_point, out[1]);
    }
    close(out[1]);
    if (pid > 0) {
        read_line(out[0], trial->said, sizeof(trial->said));
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
            continue;
        }
    }
    close(out[0]);
    if (pid > 0 && WIFSIGNALED(status)) {
        snprintf(trial->said, sizeof(trial->said), "the child died: %s",
                 strsignal(WTERMSIG(status)));
    }
    return pid > 0;
}

/* Returns false if the entry point exists and the pool did not serve it. Writes the result in words
 * to `verdict`. */
static bool judge(const struct trial *trial, char *verdict, size_t capacity)
{
    bool served = trial->allocs == 1 && trial->frees == 1 && trial->passed == 0;

    if (strcmp(trial->said, SPW_CLI_ENTRY_POINT_REACHED) == 0) {
        snprintf(verdict, capacity, "reaches spillway; not called without a device");
        return true;
    }
    if (strcmp(trial->said, SPW_CLI_ENTRY_POINT_MISSED) == 0) {
        snprintf(verdict, capacity, "DOES NOT REACH SPILLWAY: another function is found");
        return false;
    }
    if (strcmp(trial->said, "done") != 0) {
        snprintf(verdict, capacity, "not tested: %s", trial->said);
        return strcmp(trial->said, SPW_CLI_ENTRY_POINT_ABSENT) == 0;
    }
    if (!trial->counted) {
        snprintf(verdict, capacity, "NOT SERVED: spillway was not loaded");
    } else if (served) {
        snprintf(verdict, capacity, "served by the pool");
    } else if (trial->missed > 0) {
        snprintf(verdict, capacity,
                 "NOT SERVED: the runtime did not call the driver through spillway");
    } else if (trial->passed > 0) {
        snprintf(verdict, capacity, "NOT SERVED: passed to the driver");
    } else {
        snprintf(verdict, capacity,
                 "NOT SERVED: %" PRIu64 " allocations and %" PRIu64 " frees were counted",
                 trial->allocs, trial->frees);
    }
    return served;
}

bool spw_cli_doctor_entry_points(struct spw_cli_report *report)
{
    static const char *const columns[] = {"entry point", "result", NULL};
    char folder[] = "/tmp/spillway-doctor-XXXXXX";
    char stats[sizeof(folder) + 16];
    char library[PATH_MAX];
    char self[PATH_MAX];
    bool all_served = true;

    if (!spw_cli_installation_find("doctor", "libspillway.so", library) ||
        !spw_cli_installation_self(self) || mkdtemp(folder) == NULL) {
        return false;
    }
    snprintf(stats, sizeof(stats), "%s/stats", folder);
    spw_cli_report_table(report, "entry_points", "Entry points", columns);
    for (int i = 0; i < SPW_CLI_ENTRY_POINT_COUNT; i++) {
        char verdict[SPW_CLI_REPORT_CELL] = "not tested";
        struct trial trial = {0};

        if (run_child(self, library, stats, (enum spw_cli_entry_point)i, &trial)) {
            read_counters(stats, &trial);
            all_served = judge(&trial, verdict, sizeof(verdict)) && all_served;
        }
        spw_cli_report_row(report, "%s\t%s", spw_cli_entry_points[i].text, verdict);
    }
    rmdir(folder);
    return all_served;
}
