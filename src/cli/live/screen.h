/* The lines of a live view. They are put together from pieces with a style, and then shown: all of
 * them, or as many as the terminal has rows, with some at the top that stay and a line of keys at
 * the bottom. Texts of unknown origin are made fit for a terminal. One thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum spw_cli_style {
    SPW_CLI_STYLE_PLAIN,
    SPW_CLI_STYLE_TITLE,   /* bold */
    SPW_CLI_STYLE_HEADING, /* of columns: reverse */
    SPW_CLI_STYLE_DIM,
    SPW_CLI_STYLE_GOOD, /* green, yellow, red */
    SPW_CLI_STYLE_WARNING,
    SPW_CLI_STYLE_BAD,
    SPW_CLI_STYLE_CHOSEN, /* reverse, until the end of the line */
};

enum { SPW_CLI_SCREEN_LINES = 2048 };

struct spw_cli_screen {
    int columns; /* lines are cut there; 0: they are not */
    int rows;    /* of the terminal; 0: all lines are shown */
    bool colour;
    int fixed;  /* so many lines at the top do not scroll */
    int scroll; /* so many of the others are above the window */

    char *text; /* of all lines, each terminated */
    size_t used, capacity;
    size_t lines[SPW_CLI_SCREEN_LINES]; /* where each begins */
    int count;
    int column; /* of the line that is being made */
    bool open;  /* there is such a line */
    bool chosen;
};

/* Forgets all lines and takes the size and the colours of the terminal. */
void spw_cli_screen_clear(struct spw_cli_screen *screen);

/* Adds a piece to the line. */
void spw_cli_screen_add(struct spw_cli_screen *screen, enum spw_cli_style style, const char *format,
                        ...) __attribute__((format(printf, 3, 4)));

/* Adds a text whose beginning and end both matter: where the line is too short, the middle is left
 * out. */
void spw_cli_screen_add_ends(struct spw_cli_screen *screen, const char *text);

/* Ends the line. */
void spw_cli_screen_end(struct spw_cli_screen *screen);

/* A line of one piece. */
void spw_cli_screen_line(struct spw_cli_screen *screen, enum spw_cli_style style,
                         const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Adds a bar of `width` columns with a frame: the shares `full` and `half` of `all` are marked `#`
 * and `=`, in a colour by their sum. */
void spw_cli_screen_bar(struct spw_cli_screen *screen, int width, double full, double half,
                        double all);

/* Writes all lines to stdout, one below the other. */
void spw_cli_screen_print(const struct spw_cli_screen *screen);

/* Draws the window over the one before. `keys` is the line at the bottom. */
void spw_cli_screen_draw(struct spw_cli_screen *screen, const char *keys);

/* Scrolls so that a line is in the window. */
void spw_cli_screen_reveal(struct spw_cli_screen *screen, int line);

/* The number of lines that the window holds, at least 1. */
int spw_cli_screen_window(const struct spw_cli_screen *screen);

/* Frees the lines. */
void spw_cli_screen_free(struct spw_cli_screen *screen);
