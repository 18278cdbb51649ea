#include "cli/commands/page.h"

#include "cli/console/messages.h"
#include "cli/launch/open.h"
#include "cli/launch/run_directory.h"
#include "cli/report/page_file.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char target[PATH_MAX]; /* absolute */

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
    spw_cli_open_prepare();
    choose_recording();
    return SPW_CLI_EXIT_OK;
}

void spw_cli_page_finish(const char *command, const struct spw_cli_flags *flags, int exit_code)
{
    size_t count;
    const char *const *recordings = spw_cli_run_directory_recordings(&count);
    const struct spw_cli_pages pages = {
        .paths = recordings, .count = count, .shown = SPW_CLI_SHOWN_KNOWN, .exit_code = exit_code};
    const char *why = NULL;

    if (flags->report == NULL) {
        return;
    }
    if (count == 0) {
        spw_cli_complain(command, "no report: no process recorded memory of a device");
        return;
    }
    if (!spw_cli_page_file_write(command, target, &pages)) {
        return;
    }
    if (flags->open) {
        why = spw_cli_open(target);
    }
    spw_cli_print(stderr, "spillway: report: %s%s%s%s\n", target,
                  why != NULL ? " (not opened: " : "", why != NULL ? why : "",
                  why != NULL ? ")" : "");
}
