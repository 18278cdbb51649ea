/* The live views of `spillway top`, and the counters as a file for Prometheus. It does not know
 * recordings.
 *
 *   list_view      the list of all processes
 *   process_view   one process: its devices and call sites
 *   prometheus     counters as a text file for Prometheus' node exporter
 *   screen         the lines of a view, printed or drawn
 *   terminal       size, settings and keys of the terminal
 *   views          declares the views
 *
 * The lines of a live view are built from pieces, and each piece has a style. The lines are either
 * all printed or drawn on the terminal. The drawing has fixed lines at the top, a window that
 * scrolls, and a line of keys at the bottom. Text of unknown origin is made safe for a terminal.
 * One thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum spw_cli_style {
    SPW_CLI_STYLE_PLAIN,
    SPW_CLI_STYLE_TITLE,   /* bold */
    SPW_CLI_STYLE_HEADING, /* heading of columns; reverse */
    SPW_CLI_STYLE_DIM,
    SPW_CLI_STYLE_GOOD,    /* green */
    SPW_CLI_STYLE_WARNING, /* yellow */
    SPW_CLI_STYLE_BAD,     /* red */
    SPW_CLI_STYLE_CHOSEN,  /* reverse, until the end of the line */
};

enum { SPW_CLI_SCREEN_LINES = 2048 };

struct spw_cli_screen {
    int columns; /* lines are cut off at this width; 0: never */
    int rows;    /* rows of the terminal; 0: all lines are shown */
    bool colour;
    int fixed;  /* number of lines at the top that do not scroll */
    int scroll; /* number of lines that are scrolled out above the window */

    char *text; /* all lines, each terminated */
    size_t used, capacity;
    size_t lines[SPW_CLI_SCREEN_LINES]; /* offset of each in `text` */
    int count;
    int column; /* in the line that is being made */
    bool open;  /* a line is being made */
    bool chosen;
};

/* _clear removes all lines, and reads the size and the colours of the terminal. _free frees the
 * lines. */
void spw_cli_screen_clear(struct spw_cli_screen *screen);
void spw_cli_screen_free(struct spw_cli_screen *screen);

/* Add to the lines. _add appends a piece to the current line. _add_ends appends a text; if the line
 * has no room for the text, the middle of the text is omitted. _end ends the current line. _line
 * adds a line that has one piece. */
void spw_cli_screen_add(struct spw_cli_screen *screen, enum spw_cli_style style, const char *format,
                        ...) __attribute__((format(printf, 3, 4)));
void spw_cli_screen_add_ends(struct spw_cli_screen *screen, const char *text);
void spw_cli_screen_end(struct spw_cli_screen *screen);
void spw_cli_screen_line(struct spw_cli_screen *screen, enum spw_cli_style style,
                         const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Adds a framed bar of `width` columns. The bar shows `full` (`#`) and `half` (`=`) as parts of
 * `all`. Its colour depends on their sum. */
void spw_cli_screen_bar(struct spw_cli_screen *screen, int width, double full, double half,
                        double all);

/* Writes all lines to stdout. */
void spw_cli_screen_print(const struct spw_cli_screen *screen);

/* Draws the window over the previously drawn window. `keys` is the line at the bottom. */
void spw_cli_screen_draw(struct spw_cli_screen *screen, const char *keys);

/* Scrolls until a line is in the window. */
void spw_cli_screen_reveal(struct spw_cli_screen *screen, int line);

/* Returns the number of lines that the window can show, at least 1. */
int spw_cli_screen_window(const struct spw_cli_screen *screen);
