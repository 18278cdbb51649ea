#include "cli/live/terminal.h"

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

/* Switch to the second screen, without line wrapping and cursor, and back. */
static const char enter_codes[] = "\033[?1049h\033[?7l\033[?25l";
static const char leave_codes[] = "\033[?25h\033[?7h\033[?1049l";

enum { ESCAPE_MS = 50, PENDING = 64 };

static struct {
    volatile sig_atomic_t drawn; /* the second screen is shown */
    volatile sig_atomic_t raw;   /* stdin gives keys one by one */
    struct termios before;
    bool reads; /* stdin is a terminal */
    bool draws; /* wants the second screen */
    unsigned char pending[PENDING];
    int begin, end; /* of the unused bytes in `pending` */
} terminal;

static volatile sig_atomic_t quit, resized, stopped;

static void on_signal(int number)
{
    if (number == SIGWINCH) {
        resized = 1;
    } else if (number == SIGTSTP) {
        stopped = 1;
    } else {
        quit = 1;
    }
}

/* Writes codes immediately, without the buffer of stdio. */
static void put_codes(const char *codes, size_t length)
{
    (void)!write(STDOUT_FILENO, codes, length);
}

static void set_up(void)
{
    if (terminal.draws && spw_cli_terminal_can_draw()) {
        put_codes(enter_codes, sizeof(enter_codes) - 1);
        terminal.drawn = 1;
    }
    /* A process in the background would be stopped if it changed the settings. */
    if (terminal.reads && tcgetpgrp(STDIN_FILENO) == getpgrp() &&
        tcgetattr(STDIN_FILENO, &terminal.before) == 0) {
        struct termios plain = terminal.before;

        plain.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
        plain.c_cc[VMIN] = 1;
        plain.c_cc[VTIME] = 0;
        terminal.raw = tcsetattr(STDIN_FILENO, TCSANOW, &plain) == 0;
    }
}

void spw_cli_terminal_enter(bool draws)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGWINCH, SIGTSTP};
    const struct sigaction action = {.sa_handler = on_signal};

    for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
        (void)sigaction(numbers[i], &action, NULL);
    }
    terminal.draws = draws;
    terminal.reads = isatty(STDIN_FILENO) != 0;
    set_up();
}

void spw_cli_terminal_leave(void)
{
    if (terminal.raw != 0) {
        (void)tcsetattr(STDIN_FILENO, TCSANOW, &terminal.before);
        terminal.raw = 0;
    }
    if (terminal.drawn != 0) {
        put_codes(leave_codes, sizeof(leave_codes) - 1);
        terminal.drawn = 0;
    }
}

/* Handles Ctrl-Z. Restores the terminal, stops this process, and sets up the terminal again when
 * the process continues. */
static void stop(void)
{
    stopped = 0;
    spw_cli_terminal_leave();
    (void)raise(SIGSTOP);
    set_up();
}

static bool is_readable(int timeout_ms)
{
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};

    return poll(&input, terminal.reads ? 1 : 0, timeout_ms) > 0;
}

/* Reads the available bytes. Returns false at the end of the input. */
static bool fill(void)
{
    ssize_t got;

    terminal.begin = terminal.end = 0;
    got = read(STDIN_FILENO, terminal.pending, sizeof(terminal.pending));
    terminal.end = got > 0 ? (int)got : 0;
    return got > 0;
}

/* Returns the next byte of an escape sequence, or -1 if the sequence has ended. */
static int next_byte(void)
{
    if (terminal.begin == terminal.end && (!is_readable(ESCAPE_MS) || !fill())) {
        return -1;
    }
    return terminal.pending[terminal.begin++];
}

/* The key of a sequence ESC [ ... or ESC O ... */
static int escape_key(void)
{
    int first = next_byte(), byte, digit = 0;

    if (first != '[' && first != 'O') {
        return SPW_CLI_KEY_BACK;
    }
    do {
        byte = next_byte();
        digit = byte >= '0' && byte <= '9' ? byte : digit;
    } while (byte >= 0 && byte < '@');
    switch (byte) {
    case 'A':
        return SPW_CLI_KEY_UP;
    case 'B':
        return SPW_CLI_KEY_DOWN;
    case 'C':
        return SPW_CLI_KEY_ENTER;
    case 'D':
        return SPW_CLI_KEY_BACK;
    case 'H':
        return SPW_CLI_KEY_HOME;
    case 'F':
        return SPW_CLI_KEY_END;
    case '~':
        return digit == '5'   ? SPW_CLI_KEY_PAGE_UP
               : digit == '6' ? SPW_CLI_KEY_PAGE_DOWN
               : digit == '1' ? SPW_CLI_KEY_HOME
               : digit == '4' ? SPW_CLI_KEY_END
                              : SPW_CLI_KEY_REDRAW;
    default:
        return SPW_CLI_KEY_REDRAW;
    }
}

static int signalled(void)
{
    if (quit != 0) {
        return SPW_CLI_KEY_QUIT;
    }
    if (stopped != 0) {
        stop();
        return SPW_CLI_KEY_REDRAW;
    }
    if (resized != 0) {
        resized = 0;
        return SPW_CLI_KEY_REDRAW;
    }
    return SPW_CLI_KEY_NONE;
}

int spw_cli_terminal_key(int timeout_ms)
{
    int key = signalled();

    if (key != SPW_CLI_KEY_NONE) {
        return key;
    }
    if (terminal.begin == terminal.end) {
        if (!is_readable(timeout_ms)) {
            return signalled();
        }
        if (!fill()) {
            return SPW_CLI_KEY_QUIT;
        }
    }
    key = terminal.pending[terminal.begin++];
    switch (key) {
    case '\033':
        return escape_key();
    case '\r':
    case '\n':
        return SPW_CLI_KEY_ENTER;
    case '\b':
    case '\177':
        return SPW_CLI_KEY_BACK;
    default:
        return key;
    }
}

void spw_cli_terminal_size(int *ret_columns, int *ret_rows)
{
    struct winsize size;
    bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0;

    *ret_columns = known ? size.ws_col : 0;
    *ret_rows = known ? size.ws_row : 0;
}

bool spw_cli_terminal_can_draw(void)
{
    const char *name = getenv("TERM");

    return isatty(STDOUT_FILENO) != 0 && name != NULL && *name != '\0' && strcmp(name, "dumb") != 0;
}
