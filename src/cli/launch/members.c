#include "cli/launch/members.h"

#include "system/pid.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_BYTES = 1 << 20 }; /* the most that is read of an environment */

/* Returns true if `text`, whose strings end with NUL, has the string `wanted`. */
static bool contains(const char *text, size_t bytes, const char *wanted)
{
    size_t length = strlen(wanted) + 1;

    for (const char *at = text; (size_t)(at - text) + length <= bytes; at += strlen(at) + 1) {
        if (memcmp(at, wanted, length) == 0) {
            return true;
        }
    }
    return false;
}

/* Returns true if the environment of a process has the string `wanted`. Returns false for processes
 * of other users. `text` has room for MOST_BYTES and a terminator. */
static bool is_member(const char *pid, const char *wanted, char *text)
{
    char path[64];
    size_t bytes = 0;
    ssize_t got = 1;
    int fd;

    snprintf(path, sizeof(path), "/proc/%.20s/environ", pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return false;
    }
    while (got > 0 && bytes < MOST_BYTES) {
        got = read(fd, text + bytes, MOST_BYTES - bytes);
        bytes += got > 0 ? (size_t)got : 0;
    }
    close(fd);
    text[bytes] = '\0';
    return contains(text, bytes, wanted);
}

/* Calls `visit` for each other process of the run, until a call returns true. Returns 1 if a call
 * returned true, 0 if no call did, and -1 if the processes cannot be listed. */
static int each_member(const char *folder, bool (*visit)(pid_t pid, void *context), void *context)
{
    char wanted[PATH_MAX + 128];
    char *text = malloc(MOST_BYTES + 1);
    DIR *processes = opendir("/proc");
    int found = text == NULL || processes == NULL ? -1 : 0;
    struct dirent *entry;

    snprintf(wanted, sizeof(wanted), "SPILLWAY_RUN_DIR=%s", folder);
    while (found == 0 && (entry = readdir(processes)) != NULL) {
        if (isdigit((unsigned char)entry->d_name[0]) && atoi(entry->d_name) != getpid() &&
            is_member(entry->d_name, wanted, text)) {
            found = visit(atoi(entry->d_name), context);
        }
    }
    if (processes != NULL) {
        closedir(processes);
    }
    free(text);
    return found;
}

/* ---- work ---- */

struct work {
    int program;
    uint64_t ticks; /* of processor time */
    bool waits;     /* for a disk */
};

static bool add_work(pid_t pid, void *context)
{
    struct work *work = context;
    uint64_t ticks;
    char state;

    if (spw_pid_work(pid, &ticks, &state)) {
        work->ticks += ticks;
        work->waits |= state == 'D';
    }
    return false;
}

static bool add_other_work(pid_t pid, void *context)
{
    return pid != ((struct work *)context)->program && add_work(pid, context);
}

bool spw_cli_members_work(int program)
{
    enum { PART = 50 }; /* 1/50 s of processor time; a process that polls uses less */
    const char *folder = getenv("SPILLWAY_RUN_DIR");
    static struct work last;
    struct work now = {.program = program};
    bool worked;

    (void)add_work(program, &now);
    if (folder != NULL) {
        (void)each_member(folder, add_other_work, &now);
    }
    worked = now.waits || last.program != program || now.ticks < last.ticks ||
             now.ticks - last.ticks > (uint64_t)sysconf(_SC_CLK_TCK) / PART;
    last = now;
    return worked;
}

/* ---- the end ---- */

static bool kill_one(pid_t pid, void *context)
{
    (void)context;
    (void)kill(pid, SIGKILL);
    return false;
}

void spw_cli_members_kill(void)
{
    const char *folder = getenv("SPILLWAY_RUN_DIR");

    if (folder != NULL) {
        (void)each_member(folder, kill_one, NULL);
    }
}

static bool stop(pid_t pid, void *context)
{
    return true;
}

bool spw_cli_members_live(const char *folder)
{
    return each_member(folder, stop, NULL) != 0;
}
