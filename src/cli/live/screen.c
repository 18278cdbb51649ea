#include "cli/live/screen.h"

#include "cli/console/messages.h"
#include "cli/live/terminal.h"
#include "common/grow.h"
#include "common/utf8.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PIECE = 2048 };

static const char *const codes[] = {
    [SPW_CLI_STYLE_PLAIN] = "",          [SPW_CLI_STYLE_TITLE] = "\033[1m",
    [SPW_CLI_STYLE_HEADING] = "\033[7m", [SPW_CLI_STYLE_DIM] = "\033[2m",
    [SPW_CLI_STYLE_GOOD] = "\033[32m",   [SPW_CLI_STYLE_WARNING] = "\033[33m",
    [SPW_CLI_STYLE_BAD] = "\033[31m",    [SPW_CLI_STYLE_CHOSEN] = "\033[7m",
};

void spw_cli_screen_clear(struct spw_cli_screen *screen)
{
    spw_cli_terminal_size(&screen->columns, &screen->rows);
    screen->colour = spw_cli_has_colour(STDOUT_FILENO);
    screen->used = 0;
    screen->count = 0;
    screen->fixed = 0;
    screen->column = 0;
    screen->open = screen->chosen = false;
}

/* Appends bytes and a terminator, which is not counted. If memory runs out, the bytes are lost. */
static void append(struct spw_cli_screen *screen, const char *bytes, size_t length)
{
    if (!SPW_GROW(&screen->text, &screen->capacity, screen->used + length + 1)) {
        return;
    }
    memcpy(screen->text + screen->used, bytes, length);
    screen->used += length;
    screen->text[screen->used] = '\0';
}

static void open_line(struct spw_cli_screen *screen)
{
    if (!screen->open) {
        screen->lines[screen->count] = screen->used;
        append(screen, "", 0);
        screen->open = true;
        screen->column = 0;
    }
}

/* The bytes of a text that fit into the rest of the line. Each character counts as one column; a
 * line with wider characters is cut off, not wrapped. */
static size_t fitting(struct spw_cli_screen *screen, const char *text)
{
    size_t bytes = 0;

    while (text[bytes] != '\0' && (screen->columns == 0 || screen->column < screen->columns)) {
        bytes += spw_utf8_length(text + bytes);
        screen->column++;
    }
    return bytes;
}

static void add(struct spw_cli_screen *screen, enum spw_cli_style style, const char *format,
                va_list arguments)
{
    char piece[PIECE];
    bool coloured;

    if (screen->count >= SPW_CLI_SCREEN_LINES) {
        return;
    }
    vsnprintf(piece, sizeof(piece), format, arguments);
    spw_utf8_plain(piece, /* keep */ "");
    open_line(screen);
    coloured = screen->colour && codes[style][0] != '\0' && !screen->chosen;
    if (coloured) {
        append(screen, codes[style], strlen(codes[style]));
    }
    append(screen, piece, fitting(screen, piece));
    screen->chosen |= style == SPW_CLI_STYLE_CHOSEN;
    if (coloured && !screen->chosen) {
        append(screen, "\033[0m", 4);
    }
}

void spw_cli_screen_add(struct spw_cli_screen *screen, enum spw_cli_style style, const char *format,
                        ...)
{
    va_list arguments;

    va_start(arguments, format);
    add(screen, style, format, arguments);
    va_end(arguments);
}

/* The bytes of the first `columns` characters of a text, or of all if it has fewer. */
static size_t bytes_of(const char *text, int columns)
{
    size_t bytes = 0;

    for (; columns > 0 && text[bytes] != '\0'; columns--) {
        bytes += spw_utf8_length(text + bytes);
    }
    return bytes;
}

void spw_cli_screen_add_ends(struct spw_cli_screen *screen, const char *text)
{
    static const char gap[] = "...";
    int room = screen->columns - screen->column, all = 0;
    char plain[PIECE];

    snprintf(plain, sizeof(plain), "%s", text);
    spw_utf8_plain(plain, /* keep */ "");
    for (const char *at = plain; *at != '\0'; at += spw_utf8_length(at)) {
        all++;
    }
    if (screen->columns > 0 && all > room && room > (int)sizeof(gap)) {
        int begin = (room - (int)strlen(gap)) / 2;
        int end = room - (int)strlen(gap) - begin;

        spw_cli_screen_add(screen, SPW_CLI_STYLE_PLAIN, "%.*s%s%s", (int)bytes_of(plain, begin),
                           plain, gap, plain + bytes_of(plain, all - end));
        return;
    }
    spw_cli_screen_add(screen, SPW_CLI_STYLE_PLAIN, "%s", plain);
}

void spw_cli_screen_end(struct spw_cli_screen *screen)
{
    if (screen->count >= SPW_CLI_SCREEN_LINES) {
        return;
    }
    open_line(screen);
    if (screen->chosen && screen->colour) {
        append(screen, "\033[0m", 4);
    }
    append(screen, "", 1);
    screen->count++;
    screen->open = screen->chosen = false;
}

void spw_cli_screen_line(struct spw_cli_screen *screen, enum spw_cli_style style,
                         const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    add(screen, style, format, arguments);
    va_end(arguments);
    spw_cli_screen_end(screen);
}

/* The number of `cells` for a part of all: at least one unless the part is 0, at most `cells`. */
static int cells_of(double part, double all, int cells)
{
    double exact = all > 0 && part > 0 ? part / all * cells : 0;

    return exact <= 0 ? 0 : exact < 1 ? 1 : exact < cells ? (int)exact : cells;
}

void spw_cli_screen_bar(struct spw_cli_screen *screen, int width, double full, double half,
                        double all)
{
    int cells = width > 2 ? width - 2 : 0;
    int first = cells_of(full, all, cells);
    int both = cells_of(full + half, all, cells);
    double share = all > 0 ? (full + half) / all : 0;
    char bar[256];

    cells = cells < (int)sizeof(bar) - 1 ? cells : (int)sizeof(bar) - 1;
    for (int i = 0; i < cells; i++) {
        bar[i] = '.';
        if (i < both) {
            bar[i] = i < first ? '#' : '=';
        }
    }
    bar[cells] = '\0';
    spw_cli_screen_add(screen, SPW_CLI_STYLE_PLAIN, "[");
    spw_cli_screen_add(screen,
                       share >= 0.95   ? SPW_CLI_STYLE_BAD
                       : share >= 0.80 ? SPW_CLI_STYLE_WARNING
                                       : SPW_CLI_STYLE_GOOD,
                       "%s", bar);
    spw_cli_screen_add(screen, SPW_CLI_STYLE_PLAIN, "]");
}

void spw_cli_screen_print(const struct spw_cli_screen *screen)
{
    for (int i = 0; i < screen->count; i++) {
        puts(screen->text + screen->lines[i]);
    }
}

int spw_cli_screen_window(const struct spw_cli_screen *screen)
{
    int rows = screen->rows > 0 ? screen->rows - 1 : screen->count; /* one row is for the keys */

    return rows > screen->fixed ? rows - screen->fixed : 1;
}

static void clamp(struct spw_cli_screen *screen)
{
    int most = screen->count - screen->fixed - spw_cli_screen_window(screen);

    screen->scroll = screen->scroll > most ? most : screen->scroll;
    screen->scroll = screen->scroll < 0 ? 0 : screen->scroll;
}

void spw_cli_screen_reveal(struct spw_cli_screen *screen, int line)
{
    int window = spw_cli_screen_window(screen);
    int at = line - screen->fixed;

    if (at < screen->scroll) {
        screen->scroll = at;
    } else if (at >= screen->scroll + window) {
        screen->scroll = at - window + 1;
    }
    clamp(screen);
}

static void draw_line(const char *text)
{
    fputs(text, stdout);
    fputs("\033[0m\033[K\r\n", stdout);
}

void spw_cli_screen_draw(struct spw_cli_screen *screen, const char *keys)
{
    int window = spw_cli_screen_window(screen), left, shown = 0;
    char more[64] = "";

    clamp(screen);
    left = screen->count - screen->fixed - screen->scroll - window;
    fputs("\033[H", stdout);
    for (int i = 0; i < screen->count; i++) {
        bool inside = i < screen->fixed || (i - screen->fixed >= screen->scroll &&
                                            i - screen->fixed < screen->scroll + window);

        if (inside && (screen->rows == 0 || shown < screen->rows - 1)) {
            draw_line(screen->text + screen->lines[i]);
            shown++;
        }
    }
    fputs("\033[J", stdout);
    if (left > 0) {
        snprintf(more, sizeof(more), "%d more below  ", left);
    }
    if (screen->rows != 1) {
        char line[256];

        snprintf(line, sizeof(line), "%s%s", more, keys);
        if (screen->columns > 0 && screen->columns < (int)sizeof(line)) {
            line[screen->columns] = '\0';
        }
        if (screen->rows > 0) {
            printf("\033[%d;1H", screen->rows);
        }
        printf("%s%s%s\033[K", screen->colour ? "\033[2m" : "", line,
               screen->colour ? "\033[0m" : "");
    }
}

void spw_cli_screen_free(struct spw_cli_screen *screen)
{
    free(screen->text);
    screen->text = NULL;
    screen->used = screen->capacity = 0;
}
