/* The file of a page. One thread. */
#pragma once

#include <limits.h>
#include <stdbool.h>

#include "cli/report/report.h"

/* Makes a path absolute, and checks that a page can be written there: the folder exists, and a file
 * that exists is a page of spillway, which a new page replaces. Otherwise writes a line about
 * --report to stderr and returns false. */
bool spw_cli_page_file_check(const char *command, const char *path, char ret_target[PATH_MAX]);

/* Writes a page to an absolute path. Returns false, after a line on stderr, if there is none. */
bool spw_cli_page_file_write(const char *command, const char *target,
                             const struct spw_cli_pages *pages);
