/* The terminal of a live view: its settings, size and keys. The code uses plain escape codes that
 * all current terminals know. Therefore the Python wheel does not need a terminal library and a
 * terminfo database. One thread; one terminal, which is the terminal of stdin and stdout. */
#pragma once

#include <stdbool.h>

/* Keys; all others are ASCII characters. */
enum spw_cli_key {
    SPW_CLI_KEY_NONE = 0, /* no key within the time limit */
    SPW_CLI_KEY_UP = 256,
    SPW_CLI_KEY_DOWN,
    SPW_CLI_KEY_PAGE_UP,
    SPW_CLI_KEY_PAGE_DOWN,
    SPW_CLI_KEY_HOME,
    SPW_CLI_KEY_END,
    SPW_CLI_KEY_ENTER,
    SPW_CLI_KEY_BACK,   /* Escape, Backspace or the left arrow */
    SPW_CLI_KEY_REDRAW, /* the window has a new size, or the command continues after Ctrl-Z */
    SPW_CLI_KEY_QUIT,   /* SIGINT, SIGTERM, SIGHUP, or the end of the input */
};

/* Starts to catch signals. If stdin is a terminal and this command is in the foreground, sets the
 * terminal to deliver keys one by one. If `draws` is true and stdout is a terminal, switches to the
 * alternate screen and disables line wrapping. spw_cli_terminal_leave restores the terminal. */
void spw_cli_terminal_enter(bool draws);

/* Restores the terminal. May be called twice, and may be called in a signal handler. */
void spw_cli_terminal_leave(void);

/* Waits at most `timeout_ms` for a key or a signal. Returns the key. */
int spw_cli_terminal_key(int timeout_ms);

/* Writes the size of the terminal at stdout. Writes 0 and 0 if stdout is not a terminal. */
void spw_cli_terminal_size(int *ret_columns, int *ret_rows);

/* Returns true if stdout is a terminal that can show drawn views. */
bool spw_cli_terminal_can_draw(void);
