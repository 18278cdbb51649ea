#include "cli/commands/page.h"

#include "cli/console/messages.h"
#include "cli/launch/open.h"
#include "cli/launch/other_ranks.h"
#include "cli/launch/run_directory.h"
#include "cli/report/page_file.h"
#include "common/options.h"
#include "stats/path.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static char target[PATH_MAX]; /* absolute */
static time_t began;          /* this command */

static const char *folder_of_target(char folder[PATH_MAX])
{
    snprintf(folder, PATH_MAX, "%s", target);
    *(strrchr(folder, '/') + 1) = '\0';
    return folder;
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
    if (!spw_cli_page_file_check(command, flags->report, target)) {
        return SPW_CLI_EXIT_USAGE;
    }
    began = time(NULL);
    spw_cli_open_prepare();
    choose_recording();
    return SPW_CLI_EXIT_OK;
}

/* Writes the page of all recordings. If each rank of a job has its own launcher, each launcher
 * writes the page of all recordings until then, one after the other. The last page is complete.
 * Whether the others fail is not known here. */
static bool write_all(const char *command, size_t own, int exit_code)
{
    bool job = spw_cli_other_ranks_exist();
    char folder[PATH_MAX];
    int lock = job ? spw_cli_other_ranks_lock(folder_of_target(folder)) : -1;
    struct spw_cli_pages pages = {.shown = SPW_CLI_SHOWN_KNOWN};
    bool written;

    if (job) {
        spw_cli_other_ranks_add(spw_option_get(SPW_OPT_SPILLWAY_RECORD, NULL, 0).text, began);
    }
    pages.paths = spw_cli_run_directory_recordings(&pages.count);
    pages.exit_code = pages.count == own ? exit_code : SPW_CLI_EXIT_UNKNOWN;
    written = spw_cli_page_file_write(command, target, &pages);
    if (lock >= 0) {
        close(lock);
    }
    return written;
}

void spw_cli_page_finish(const char *command, const struct spw_cli_flags *flags, int exit_code)
{
    const char *why = NULL;
    size_t own;

    if (flags->report == NULL) {
        return;
    }
    (void)spw_cli_run_directory_recordings(&own);
    if (own == 0) {
        spw_cli_complain(command, "no report: no process recorded memory of a device");
        return;
    }
    if (!write_all(command, own, exit_code) ||
        (spw_cli_other_ranks_exist() && spw_stats_rank() > 0)) { /* rank 0 says where it is */
        return;
    }
    if (flags->open) {
        why = spw_cli_open(target);
    }
    spw_cli_print(stderr, "spillway: report: %s%s%s%s\n", target,
                  why != NULL ? " (not opened: " : "", why != NULL ? why : "",
                  why != NULL ? ")" : "");
}
