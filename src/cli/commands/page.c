#include "cli/commands/page.h"

#include "cli/console/messages.h"
#include "cli/launch/open.h"
#include "cli/launch/run_directory.h"
#include "cli/report/report.h"
#include "system/create.h"
#include "system/fd.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char target[PATH_MAX]; /* absolute */

/* Returns true if the file is a page of spillway, which a new page replaces. */
static bool is_page(const char *path)
{
    char text[1024] = "";
    int fd = spw_fd_open_regular(path);
    ssize_t length = fd >= 0 ? read(fd, text, sizeof(text) - 1) : -1;

    if (fd >= 0) {
        close(fd);
    }
    return length >= 0 && strstr(text, "<title>spillway recording</title>") != NULL;
}

static bool set_target(const char *path)
{
    char folder[PATH_MAX];

    if (*path == '/') {
        return snprintf(target, sizeof(target), "%s", path) < (int)sizeof(target);
    }
    return getcwd(folder, sizeof(folder)) != NULL &&
           snprintf(target, sizeof(target), "%s/%s", folder, path) < (int)sizeof(target);
}

static bool has_folder(void)
{
    char folder[PATH_MAX];

    snprintf(folder, sizeof(folder), "%s", target);
    *(strrchr(folder, '/') + 1) = '\0';
    return access(folder, F_OK) == 0;
}

/* The recording lies beside the page: r-%r.rec for r.html. The user may have chosen another. A '%'
 * of the page's name is written as "%%". */
static void choose_recording(void)
{
    static const char end[] = ".html";
    size_t length = strlen(target), used = 0;
    char name[2 * PATH_MAX + 16];

    if (length > sizeof(end) && strcmp(target + length - sizeof(end) + 1, end) == 0) {
        length -= sizeof(end) - 1;
    }
    for (size_t i = 0; i < length; i++) {
        name[used++] = target[i];
        if (target[i] == '%') {
            name[used++] = '%';
        }
    }
    snprintf(name + used, sizeof(name) - used, "-%%r.rec");
    setenv(spw_option_row(SPW_OPT_SPILLWAY_RECORD)->name, name, /* replace */ 0);
}

int spw_cli_page_prepare(const char *command, const struct spw_cli_flags *flags)
{
    if (flags->report == NULL && flags->open) {
        spw_cli_complain(command, "--open opens a page (expected --report FILE too)");
        return SPW_CLI_EXIT_USAGE;
    }
    if (flags->report == NULL) {
        return SPW_CLI_EXIT_OK;
    }
    if (flags->no_pool || flags->compare) {
        spw_cli_complain(command, "--report needs a recording, and --%s makes none",
                         flags->no_pool ? "no-pool" : "compare");
        return SPW_CLI_EXIT_USAGE;
    }
    if (!set_target(flags->report)) {
        spw_cli_complain(command, "--report: the path is too long");
        return SPW_CLI_EXIT_USAGE;
    }
    if (access(target, F_OK) == 0 && !is_page(target)) {
        spw_cli_complain(command,
                         "--report=%s: the file exists, and is no page of spillway (expected a new "
                         "file, or a page to replace)",
                         flags->report);
        return SPW_CLI_EXIT_USAGE;
    }
    if (!has_folder()) {
        spw_cli_complain(command, "--report=%s: there is no folder for it", flags->report);
        return SPW_CLI_EXIT_USAGE;
    }
    spw_cli_open_prepare();
    choose_recording();
    return SPW_CLI_EXIT_OK;
}

static bool write_page(const char *command, const char *const *recordings, size_t count,
                       int exit_code)
{
    char name[PATH_MAX];
    int fd = spw_create_beside(target, 0644, name, sizeof(name));
    bool written = fd >= 0 && spw_cli_report_pages(command, recordings, count, SPW_CLI_SHOWN_KNOWN,
                                                   exit_code, fd);

    if (fd < 0 || (written && (close(fd) != 0 || rename(name, target) != 0))) {
        spw_cli_complain(command, "--report: %s: %s", target, spw_create_problem(target));
        written = false;
    }
    if (fd >= 0 && !written) {
        (void)unlink(name);
    }
    return written;
}

void spw_cli_page_finish(const char *command, const struct spw_cli_flags *flags, int exit_code)
{
    size_t count;
    const char *const *recordings = spw_cli_run_directory_recordings(&count);
    const char *why = NULL;

    if (flags->report == NULL) {
        return;
    }
    if (count == 0) {
        spw_cli_complain(command, "no report: no process recorded memory of a device");
        return;
    }
    if (!write_page(command, recordings, count, exit_code)) {
        return;
    }
    if (flags->open) {
        why = spw_cli_open(target);
    }
    spw_cli_print(stderr, "spillway: report: %s%s%s%s\n", target,
                  why != NULL ? " (not opened: " : "", why != NULL ? why : "",
                  why != NULL ? ")" : "");
}
