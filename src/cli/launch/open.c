#include "cli/launch/open.h"

#include "system/create.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static char **kept; /* the environment at the start; NULL: spw_cli_open_prepare was not called */

void spw_cli_open_prepare(void)
{
    size_t count = 0;

    while (environ[count] != NULL) {
        count++;
    }
    free(kept);
    kept = calloc(count + 1, sizeof(*kept)); /* the texts of the start are never freed */
    if (kept != NULL) {
        memcpy(kept, environ, count * sizeof(*kept));
    }
}

/* Finds xdg-open in the absolute folders of PATH. */
static bool find(char program[PATH_MAX])
{
    const char *folder = getenv("PATH");

    while (folder != NULL && *folder != '\0') {
        int length = (int)strcspn(folder, ":");

        if (*folder == '/' &&
            snprintf(program, PATH_MAX, "%.*s/xdg-open", length, folder) < PATH_MAX &&
            access(program, X_OK) == 0) {
            return true;
        }
        folder += length + (folder[length] == ':');
    }
    return false;
}

static bool is_for_another_user(void)
{
    return geteuid() != getuid() ||
           (geteuid() == 0 && (getenv("SUDO_UID") != NULL || getenv("PKEXEC_UID") != NULL));
}

static bool has_display(void)
{
    const char *display = getenv("DISPLAY"), *wayland = getenv("WAYLAND_DISPLAY");

    return (display != NULL && *display != '\0') || (wayland != NULL && *wayland != '\0');
}

/* Runs in the child, and never returns. The grandchild belongs to nobody and writes nothing. */
static void start(char *program, char *path)
{
    char *arguments[] = {program, path, NULL};
    int null = spw_create_open("/dev/null", O_RDWR, 0);

    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO && null >= 0; fd++) {
        (void)dup2(null, fd);
    }
    (void)setsid();
    if (fork() == 0) {
        execve(program, arguments, kept != NULL ? kept : environ);
    }
    _exit(0);
}

const char *spw_cli_open(const char *path)
{
    char program[PATH_MAX], copy[PATH_MAX];
    pid_t pid;

    if (is_for_another_user()) {
        return "root opens nothing for another user";
    }
    if (!has_display()) {
        return "there is no display";
    }
    if (!find(program)) {
        return "there is no xdg-open";
    }
    snprintf(copy, sizeof(copy), "%s", path);
    pid = fork();
    if (pid == 0) {
        start(program, copy);
    }
    while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR) {
    }
    return pid > 0 ? NULL : "no process can be started";
}
