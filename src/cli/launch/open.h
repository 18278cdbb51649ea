/* Opens a file with the program that the user's desktop chooses (xdg-open). Nothing waits for that
 * program. One thread. */
#pragma once

/* Keeps the present environment. The program that shows the file gets this environment, not what
 * the launcher prepares for its own program. Call it before the environment changes. */
void spw_cli_open_prepare(void);

/* Starts the program. Returns NULL if it was started, or else the reason, a static text. A program
 * is not started for another user (sudo), or without a display. */
const char *spw_cli_open(const char *path);
