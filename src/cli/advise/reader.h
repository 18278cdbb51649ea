/* Reads a recording into a history. One thread. */
#pragma once

#include "cli/advise/history.h"

/* Reads a recording. Takes the marked modules that are inside `depth` other marked modules. Also
 * takes modules inside fewer others, if they contain no marked module. On failure, writes a line
 * to stderr and returns false. On success, the caller closes *history. */
bool spw_cli_advise_history_open(struct spw_cli_advise_history *history, const char *command,
                                 const char *path, unsigned depth);
void spw_cli_advise_history_close(struct spw_cli_advise_history *history);
