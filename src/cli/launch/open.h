/* Opens a file with the program that the user's desktop chooses (xdg-open). Nothing waits for that
 * program. One thread. */
#pragma once

/* Keeps the present environment. The program that shows the file gets this environment, without
 * the launcher's changes. Call it before the first change. */
void spw_cli_open_prepare(void);

/* Starts the program. Returns NULL if it was started, otherwise the reason, a static text. A
 * program is not started for another user (sudo), or without a display. */
const char *spw_cli_open(const char *path);
