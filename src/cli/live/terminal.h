/* The terminal of a live view: settings, size and keys. Uses plain escape codes that all current
 * terminals know, so that the wheel need not include a library and a terminfo database. One thread;
 * one terminal, that of stdin and stdout. */
#pragma once

#include <stdbool.h>

/* Keys; all others are ASCII characters. */
enum spw_cli_key {
    SPW_CLI_KEY_NONE = 0, /* the time is over */
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

/* Begins to catch signals. If stdin is a terminal and this command is in its foreground, makes the
 * terminal give keys one by one. With `draws`, if stdout is a terminal, switches to its second
 * screen, without line wrapping. spw_cli_terminal_leave restores the terminal. */
void spw_cli_terminal_enter(bool draws);

/* Restores the terminal. May be called twice, and by a signal handler. */
void spw_cli_terminal_leave(void);

/* Waits for a key or a signal, at most `timeout_ms`. */
int spw_cli_terminal_key(int timeout_ms);

/* The size of the terminal at stdout; 0 and 0: there is none. */
void spw_cli_terminal_size(int *ret_columns, int *ret_rows);

/* True if output may have colours: stdout is a terminal that is not dumb, and NO_COLOR is not set
 * (no-color.org). */
bool spw_cli_terminal_has_colour(void);

/* True if stdout is a terminal that can be drawn on. */
bool spw_cli_terminal_can_draw(void);
