#include "cli/launch/members.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_BYTES = 1 << 20 }; /* of an environment */

/* True if `text`, whose strings end with NUL, has the string `wanted`. */
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

/* `text` has room for MOST_BYTES and a terminator. Processes of other users cannot be read. */
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

static void kill_members(DIR *processes, const char *wanted, char *text)
{
    struct dirent *entry;

    while ((entry = readdir(processes)) != NULL) {
        if (isdigit((unsigned char)entry->d_name[0]) && atoi(entry->d_name) != getpid() &&
            is_member(entry->d_name, wanted, text)) {
            (void)kill(atoi(entry->d_name), SIGKILL);
        }
    }
}

void spw_cli_members_kill(void)
{
    const char *folder = getenv("SPILLWAY_RUN_DIR");
    char wanted[PATH_MAX + 32];
    DIR *processes;
    char *text;

    if (folder == NULL) {
        return;
    }
    snprintf(wanted, sizeof(wanted), "SPILLWAY_RUN_DIR=%s", folder);
    text = malloc(MOST_BYTES + 1);
    processes = opendir("/proc");
    if (text != NULL && processes != NULL) {
        kill_members(processes, wanted, text);
    }
    if (processes != NULL) {
        closedir(processes);
    }
    free(text);
}
