/* `spillway pause` and `spillway resume`. */
#include "cli/commands/list.h"
#include "cli/console/arguments.h"
#include "cli/console/messages.h"

#include "cli/pause/group.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { PROCESSES_MOST = 256, WAIT_S = 30, WAIT_MOST_S = 3600, MILLISECONDS = 1000 };

struct settings {
    const char *command;
    enum spw_control_action action;
    enum spw_control_part part; /* the memory that moves */
    const char *name;           /* of the part */
    const char *folder;         /* for the file that takes the memory; NULL: it goes to the host */
    char path[PATH_MAX];        /* that `folder` points to */
    int pids[PROCESSES_MOST];
    size_t count;
    size_t wait_s;
    bool on_demand;
};

/* ---- answers ---- */

static void print_done(const struct settings *settings, const struct spw_cli_asked *asked)
{
    const struct spw_cli_answer *answer = &asked->answer;
    bool resume = settings->action == SPW_CONTROL_RESUME;

    spw_cli_print(stdout, "%s (pid %d): %s went %s", asked->watched.process, asked->watched.pid,
                  spw_cli_size(answer->moved_bytes),
                  resume                     ? "back to the device"
                  : settings->folder != NULL ? "to a file"
                                             : "to the host");
    if (answer->left_bytes > 0) {
        printf(", %s %s", spw_cli_size(answer->left_bytes),
               !resume                                  ? "stay on the device"
               : settings->part != SPW_CONTROL_PART_ALL ? "stay on the host, and are used there"
                                                        : "stay on the host for lack of room, and "
                                                          "are used there");
    }
    if (answer->host_full) {
        printf(" (the budget of host memory is used up: SPILLWAY_HOST_LIMIT)");
    }
    if (answer->error != 0) {
        printf(" (the file cannot grow: %s)", strerror(answer->error));
    }
    printf("%s\n", resume                                   ? ""
                   : settings->part != SPW_CONTROL_PART_ALL ? "; the program goes on"
                   : settings->action == SPW_CONTROL_PAUSE_ON_DEMAND
                       ? "; it comes back when the program needs the device"
                       : "; the program waits for spillway resume");
}

static const char *unknown_part(enum spw_control_part part)
{
    return part == SPW_CONTROL_PART_RULE ? "its policy has no rule of that name"
           : part == SPW_CONTROL_PART_SITE
               ? "none of its call sites matches that (spillway top PID "
                 "shows them)"
               : "none of its memory was asked for under that tag";
}

static const char *reason(const struct settings *settings, enum spw_control_outcome outcome)
{
    bool resume = settings->action == SPW_CONTROL_RESUME;

    switch (outcome) {
    case SPW_CONTROL_ALREADY:
        return resume ? "it is not paused" : "it is paused already";
    case SPW_CONTROL_UNUSED:
        return "it holds no device memory";
    case SPW_CONTROL_NO_PART:
        return unknown_part(settings->part);
    case SPW_CONTROL_WHOLE:
        return "all of its memory is paused, and comes back together: spillway resume PID";
    case SPW_CONTROL_CAPTURING:
        return "a CUDA graph is being captured, or a library submits work that spillway does not "
               "see";
    case SPW_CONTROL_BUSY:
        return "the device did not become idle in time; the program goes on (--wait SECONDS waits "
               "longer)";
    case SPW_CONTROL_NO_FILE:
        return "it cannot write a file there; the program goes on";
    case SPW_CONTROL_NO_ROOM:
        return "neither the device nor the host has room for the content of the file; it stays "
               "paused, and spillway resume may be tried again";
    case SPW_CONTROL_UNREADABLE:
        return "the content of the file cannot be read back; it stays paused";
    default:
        return "its memory cannot move to the host: SPILLWAY_SPILL is off, or spillway doctor "
               "gives the reason";
    }
}

/* Reports the answer of one process. Returns false if the process did nothing. */
static bool report(const struct settings *settings, const struct spw_cli_asked *asked)
{
    if (!asked->answered) {
        spw_cli_complain(settings->command, "process %d: %s", asked->watched.pid,
                         spw_cli_watched_lives(&asked->watched) ? "it does not answer"
                                                                : "it has ended");
        return false;
    }
    if (asked->undone) {
        spw_cli_complain(settings->command, "process %d: it goes on, as not all could be paused",
                         asked->watched.pid);
        return false;
    }
    if (asked->answer.outcome != SPW_CONTROL_DONE) {
        int error = asked->answer.error;

        spw_cli_complain(settings->command, "process %d: %s%s%s", asked->watched.pid,
                         reason(settings, asked->answer.outcome), error != 0 ? ": " : "",
                         error != 0 ? strerror(error) : "");
        return false;
    }
    print_done(settings, asked);
    return true;
}

/* ---- asking ---- */

/* Opens a process. If it cannot be opened, writes one line to stderr and returns false. */
static bool open_process(const struct settings *settings, int pid, struct spw_cli_asked *ret_asked)
{
    enum spw_cli_watch result = spw_cli_watched_open(pid, &ret_asked->watched);

    if (result != SPW_CLI_WATCH_OPENED) {
        spw_cli_watched_complain(settings->command, pid, result);
        return false;
    }
    ret_asked->open = spw_cli_control_open(&ret_asked->watched, &ret_asked->control);
    if (!ret_asked->open) {
        spw_cli_complain(settings->command, "process %d: only its user and root may", pid);
        spw_cli_watched_close(&ret_asked->watched);
        return false;
    }
    if (!spw_cli_control_await_listener(&ret_asked->control)) {
        spw_cli_complain(
            settings->command,
            "process %d: it does not listen: it was started with SPILLWAY_CONTROL=off, "
            "or on a simulated GPU without SPILLWAY_CONTROL=on",
            pid);
        return false;
    }
    return true;
}

static void close_process(struct spw_cli_asked *asked)
{
    if (asked->open) {
        spw_cli_control_close(&asked->control);
        spw_cli_watched_close(&asked->watched);
    }
}

/* ---- the command ---- */

/* Opens all processes, sends the request to them and reports their answers. Returns false if one of
 * the processes did nothing. */
static bool serve_all(const struct settings *settings, struct spw_cli_group *group)
{
    bool all = true;

    for (size_t i = 0; i < group->count; i++) {
        if (!open_process(settings, settings->pids[i], &group->asked[i])) {
            return false;
        }
    }
    spw_cli_group_ask(group);
    for (size_t i = 0; i < group->count; i++) {
        all &= report(settings, &group->asked[i]);
    }
    return all;
}

static bool serve(const struct settings *settings)
{
    struct spw_cli_group group = {
        .request = {.action = settings->action,
                    .part = settings->part,
                    .name = settings->name,
                    .folder = settings->folder,
                    .wait_ms = (uint32_t)(settings->wait_s * MILLISECONDS)},
        .asked = calloc(settings->count, sizeof(*group.asked)),
        .count = settings->count,
    };
    bool all = group.asked != NULL && serve_all(settings, &group);

    for (size_t i = 0; group.asked != NULL && i < group.count; i++) {
        close_process(&group.asked[i]);
    }
    free(group.asked);
    return all;
}

/* ---- arguments ---- */

static bool add_pid(const struct spw_cli_arguments *from)
{
    struct settings *settings = from->settings;
    int pid;

    if (!spw_cli_process_parse(from->value, &pid)) {
        spw_cli_complain(from->command, "%s: expected the number of a process", from->value);
        return false;
    }
    for (size_t i = 0; i < settings->count; i++) {
        if (settings->pids[i] == pid) {
            return true; /* named twice */
        }
    }
    if (settings->count == PROCESSES_MOST) {
        spw_cli_complain(from->command, "expected at most %d processes", PROCESSES_MOST);
        return false;
    }
    settings->pids[settings->count++] = pid;
    return true;
}

static bool take_wait(const struct spw_cli_arguments *from)
{
    struct settings *settings = from->settings;
    char *rest;
    unsigned long seconds = strtoul(from->value, &rest, 10);

    if (rest == from->value || *rest != '\0' || seconds == 0 || seconds > WAIT_MOST_S) {
        spw_cli_complain(from->command, "--wait %s: expected seconds, from 1 to %d", from->value,
                         WAIT_MOST_S);
        return false;
    }
    settings->wait_s = seconds;
    return true;
}

static bool take_destination(const struct spw_cli_arguments *from)
{
    struct settings *settings = from->settings;
    struct stat status;

    settings->folder = NULL;
    if (strcmp(from->value, "host") == 0) {
        return true;
    }
    if (realpath(from->value, settings->path) == NULL || stat(settings->path, &status) != 0) {
        spw_cli_complain(from->command, "--to %s: expected host or a folder: %s", from->value,
                         strerror(errno));
        return false;
    }
    if (!S_ISDIR(status.st_mode) || strlen(settings->path) >= SPW_STATS_PATH) {
        spw_cli_complain(from->command, "--to %s: expected host or a folder%s", from->value,
                         S_ISDIR(status.st_mode) ? " with a shorter path" : ": it is a file");
        return false;
    }
    settings->folder = settings->path;
    return true;
}

/* Takes the name of a part of the memory. If the name is not valid, or if a name was already given,
 * writes one line to stderr and returns false. */
static bool take_part(const struct spw_cli_arguments *from)
{
    struct settings *settings = from->settings;

    if (settings->name != NULL) {
        spw_cli_complain(from->command, "expected one of --rule, --site and --tag, once");
        return false;
    }
    if (from->value[0] == '\0' || strlen(from->value) >= SPW_STATS_PART) {
        spw_cli_complain(from->command, "expected a name of 1 to %d characters, not '%.20s%s'",
                         SPW_STATS_PART - 1, from->value, from->value[0] == '\0' ? "" : "...");
        return false;
    }
    settings->part = (enum spw_control_part)from->option->key;
    settings->name = from->value;
    return true;
}

static const char pause_help[] =
    "usage: spillway pause PID... [--to host|FOLDER] [--on-demand] [--wait SECONDS]\n"
    "       spillway pause PID... --rule NAME|--site PART|--tag NAME [--wait SECONDS]\n\n"
    "Moves the device memory of running processes under spillway to the host, or to a file,\n"
    "so that others can use the device. A process waits at its next use of the device, or\n"
    "when it asks for memory; nothing else in it is disturbed. Addresses do not change. The\n"
    "command prints how much memory stays on the device: small blocks and memory of other\n"
    "libraries. The CUDA context also stays.\n\n"
    "  --to FOLDER     move the memory of each process to a file in this folder, not to the\n"
    "                  host (--to host, the default); the file has no name, so it disappears\n"
    "                  when the process ends\n"
    "  --on-demand     the process does not wait for spillway resume: its memory comes back\n"
    "                  when it needs the device\n"
    "  --rule NAME     move only the memory of this rule of the program's policy; the program\n"
    "                  goes on, and uses it on the host\n"
    "  --site PART     the same for call sites whose text in spillway top has this part,\n"
    "                  with * and ?: 'model.py:56'\n"
    "  --tag NAME      the same for memory with this tag (spillway.tag)\n"
    "  --wait SECONDS  longest time to wait until the device is idle (30)\n\n"
    "example: spillway pause 4711; ./other-job; spillway resume 4711\n";

static const char resume_help[] =
    "usage: spillway resume PID... [--rule NAME|--site PART|--tag NAME] [--wait SECONDS]\n\n"
    "Moves the memory of paused processes back to the device, and lets the processes go on.\n"
    "Memory that does not fit there is used on the host, which is slower, and comes back\n"
    "later. A process whose memory is in a file stays paused until all of its memory has room\n"
    "on the device or the host.\n\n"
    "  --rule NAME, --site PART, --tag NAME\n"
    "                  move only this part back, named as for spillway pause\n"
    "  --wait SECONDS  longest time to wait for a device (30)\n";

static const struct spw_cli_option resume_options[] = {
    {"", .take = add_pid},
    {"rule", .take = take_part, .key = SPW_CONTROL_PART_RULE},
    {"site", .take = take_part, .key = SPW_CONTROL_PART_SITE},
    {"tag", .take = take_part, .key = SPW_CONTROL_PART_TAG},
    {"wait", .take = take_wait},
    {0},
};

enum { RESUME_OPTIONS = sizeof(resume_options) / sizeof(*resume_options) };

static int run(int argc, char **argv, struct settings *settings,
               const struct spw_cli_option *options, const char *help)
{
    int code;

    settings->command = argv[0];
    settings->wait_s = WAIT_S;
    code = spw_cli_arguments_read(argc, argv, options, help, settings);
    if (code >= 0) {
        return code;
    }
    if (settings->on_demand) {
        settings->action = SPW_CONTROL_PAUSE_ON_DEMAND;
    }
    if (settings->count == 0) {
        return spw_cli_bad_usage(argv[0], "expected the number of a process");
    }
    if (settings->name != NULL &&
        (settings->folder != NULL || settings->action == SPW_CONTROL_PAUSE_ON_DEMAND)) {
        spw_cli_complain(argv[0], "--rule, --site and --tag go with --to host only, and not with "
                                  "--on-demand: the program goes on, and uses the memory there");
        return SPW_CLI_EXIT_USAGE;
    }
    return serve(settings) ? SPW_CLI_EXIT_OK : SPW_CLI_EXIT_FINDINGS;
}

int spw_cli_command_pause(int argc, char **argv)
{
    struct settings settings = {.action = SPW_CONTROL_PAUSE};
    struct spw_cli_option options[RESUME_OPTIONS + 2] = {
        {"on-demand", .given = &settings.on_demand},
        {"to", .take = take_destination},
    };

    memcpy(options + 2, resume_options, sizeof(resume_options));
    return run(argc, argv, &settings, options, pause_help);
}

int spw_cli_command_resume(int argc, char **argv)
{
    struct settings settings = {.action = SPW_CONTROL_RESUME};

    return run(argc, argv, &settings, resume_options, resume_help);
}
