/* Reads a recording into a history. One thread. */
#pragma once

#include "cli/advise/history.h"

/* Reads a recording. Of marked modules that contain each other, takes the ones inside `depth`
 * others, and the ones inside fewer that contain none. On failure, writes a line to stderr and
 * returns false. On success, the caller closes *history. */
bool spw_cli_advise_history_open(struct spw_cli_advise_history *history, const char *command,
                                 const char *path, unsigned depth);
void spw_cli_advise_history_close(struct spw_cli_advise_history *history);
