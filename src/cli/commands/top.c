#include "cli/commands/list.h"
#include "cli/console/arguments.h"
#include "cli/console/json.h"
#include "cli/console/messages.h"

#include "cli/inspect/call_sites.h"
#include "cli/inspect/running.h"
#include "cli/live/screen.h"
#include "cli/live/terminal.h"
#include "cli/live/views.h"
#include "system/clock.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MILLISECONDS = 1000, SHORT_WAIT_MS = 250, INTERVAL_LEAST_MS = 100 };
enum { INTERVAL_MOST_S = 86400 };

/* A child that shows one process of the list returns this exit code to ask for the list again. */
enum { BACK_TO_LIST = 64 };

struct settings {
    int pid; /* 0: all processes */
    bool once;
    bool json;
    int interval_ms;
    enum spw_cli_sort sort;
    const char *prometheus; /* a file; NULL: none */
};

struct view {
    struct settings settings;
    bool from_list;
    struct spw_cli_watched process; /* if a pid was given */
    int sites_file;                 /* the call sites of `process`; -1: none */
    struct spw_cli_running running; /* if no pid was given */
    int chosen;                     /* the pid that is marked in the list; 0: none yet */
    struct spw_cli_screen screen;
};

/* ---- limits, because a process may be hostile ---- */

enum { FRAME_LIMIT_S = 30, MEMORY_MIB = 1024, FRAME_BYTES = 1 << 20 };

/* Appends the digits of a positive number. May be called in a signal handler. */
static size_t append_number(char *text, size_t used, int number)
{
    char digits[16];
    size_t count = 0;

    for (; number > 0; number /= 10) {
        digits[count++] = (char)('0' + number % 10);
    }
    while (count > 0) {
        text[used++] = digits[--count];
    }
    return used;
}

static void give_up(int number)
{
    static const char begin[] = "spillway: top: the memory of ";
    static const char end[] = " takes too long to read: it may be damaged\n";
    char text[128];
    size_t used = sizeof(begin) - 1;
    int pid = spw_cli_running_now();

    (void)number;
    memcpy(text, begin, used);
    memcpy(text + used, pid > 0 ? "process " : "the process", pid > 0 ? 8 : 11);
    used += pid > 0 ? 8 : 11;
    used = append_number(text, used, pid);
    memcpy(text + used, end, sizeof(end) - 1);
    spw_cli_terminal_leave();
    (void)!write(STDERR_FILENO, text, used + sizeof(end) - 1);
    _exit(SPW_CLI_EXIT_FINDINGS);
}

/* Limits the memory of this process, and prepares the alarm that limits the time of each frame. The
 * limits are needed because demangling a crafted name can take very long and can use any amount of
 * memory. */
static void guard(void)
{
    const struct sigaction action = {.sa_handler = give_up};
    static char output[FRAME_BYTES];
    unsigned long pages = 0;
    struct rlimit limit;
    FILE *file = fopen("/proc/self/statm", "re");

    /* Output is buffered and written outside the limited time, because its reader may be slow. */
    (void)setvbuf(stdout, output, _IOFBF, sizeof(output));
    (void)sigaction(SIGALRM, &action, NULL);
    if (file != NULL && fscanf(file, "%*u %*u %*u %*u %*u %lu", &pages) == 1 &&
        getrlimit(RLIMIT_DATA, &limit) == 0) {
        rlim_t most = (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE) + ((rlim_t)MEMORY_MIB << 20);

        limit.rlim_cur = most < limit.rlim_max ? most : limit.rlim_max;
        (void)setrlimit(RLIMIT_DATA, &limit);
    }
    if (file != NULL) {
        (void)fclose(file);
    }
}

/* ---- frames ---- */

static enum spw_cli_watch open_process(struct view *view)
{
    enum spw_cli_watch result = spw_cli_watched_open(view->settings.pid, &view->process);

    view->sites_file = -1;
    if (result == SPW_CLI_WATCH_OPENED && view->process.sites[0] != '\0') {
        view->sites_file = spw_cli_process_open(view->settings.pid, view->process.sites);
    }
    return result;
}

/* Reads the statistics of the shown process again, even if it runs another program now. Returns
 * NULL, or the reason why there are no statistics. */
static const char *read_process(struct view *view)
{
    if (spw_cli_watched_replaced(&view->process)) {
        spw_cli_watched_close(&view->process);
        if (view->sites_file >= 0) {
            (void)close(view->sites_file);
        }
        return open_process(view) == SPW_CLI_WATCH_OPENED
                   ? NULL
                   : "it runs another program now, which does not use CUDA yet";
    }
    return spw_cli_watched_read(&view->process) ? NULL : "its statistics are damaged";
}

/* Reads the shown statistics again. If the process has none, writes one line to stderr and returns
 * false. */
static bool read_all(struct view *view)
{
    const char *problem = NULL;

    (void)alarm(FRAME_LIMIT_S);
    if (view->settings.pid == 0) {
        spw_cli_running_read(&view->running);
        spw_cli_list_sort(&view->running, view->settings.sort);
    } else {
        problem = read_process(view);
    }
    (void)alarm(0);
    if (problem != NULL) {
        spw_cli_terminal_leave();
        spw_cli_complain("top", "process %d: %s", view->settings.pid, problem);
    }
    return problem == NULL;
}

/* Returns the index of the marked process in the list, or -1 if the process has ended. */
static int place_of_chosen(const struct view *view)
{
    int i = view->running.count - 1;

    while (i >= 0 && view->running.list[i]->pid != view->chosen) {
        i--;
    }
    return i;
}

/* Marks the first process if the marked one has ended. */
static void keep_chosen(struct view *view)
{
    if (place_of_chosen(view) < 0) {
        view->chosen = view->running.count > 0 ? view->running.list[0]->pid : 0;
    }
}

static void print_json(struct view *view, const struct spw_callsite_shm *share)
{
    cJSON *root = cJSON_CreateObject();

    spw_cli_time_json(root);
    if (view->settings.pid == 0) {
        spw_cli_list_json(root, &view->running);
    } else {
        spw_cli_process_json(root, &view->process, share);
    }
    spw_cli_json_print(root, /* one_line */ true);
}

/* Makes the lines of a frame, or prints it as JSON. */
static void make(struct view *view, bool marks)
{
    struct spw_callsite_shm *share = NULL;

    (void)alarm(FRAME_LIMIT_S);
    if (view->settings.pid != 0 && view->sites_file >= 0) {
        share = spw_cli_call_sites_read(view->sites_file);
    }
    spw_cli_screen_clear(&view->screen);
    if (view->settings.json) {
        print_json(view, share);
    } else if (view->settings.pid == 0) {
        int line;

        keep_chosen(view);
        line = spw_cli_list_view(&view->screen, &view->running, view->settings.sort,
                                 marks ? view->chosen : 0);
        if (line >= 0) {
            spw_cli_screen_reveal(&view->screen, line);
        }
    } else {
        spw_cli_process_view(&view->screen, &view->process, share);
    }
    (void)alarm(0);
    spw_cli_call_sites_close(share);
}

static bool has_ended(const struct view *view)
{
    return view->settings.pid != 0 && !spw_cli_watched_lives(&view->process);
}

static bool print_once(struct view *view)
{
    (void)poll(NULL, 0, SHORT_WAIT_MS);
    if (!read_all(view)) {
        return false;
    }
    make(view, /* marks */ false);
    spw_cli_screen_print(&view->screen);
    fflush(stdout);
    return true;
}

/* ---- keys ---- */

static void draw(struct view *view)
{
    const char *keys = view->settings.pid == 0 ? "arrows choose  enter: show  s: sort  q: quit"
                       : view->from_list       ? "arrows scroll  escape: list  q: quit"
                                               : "arrows scroll  q: quit";

    if (!view->settings.json) {
        spw_cli_screen_draw(&view->screen, keys);
    }
    fflush(stdout);
}

static void move_mark(struct view *view, int by)
{
    int from = place_of_chosen(view), last = view->running.count - 1;
    int to = from + by < 0 ? 0 : from + by > last ? last : from + by;

    if (from >= 0) {
        view->chosen = view->running.list[to]->pid;
    }
}

static void move(struct view *view, int by)
{
    if (view->settings.pid == 0) {
        move_mark(view, by);
        make(view, /* marks */ true);
    } else {
        view->screen.scroll += by;
    }
    draw(view);
}

static int show_process(const struct view *list);

/* Shows the marked process until the user returns to the list. Returns false if the command should
 * end. */
static bool enter(struct view *view)
{
    int code;

    if (view->settings.pid != 0 || view->chosen == 0) {
        return true;
    }
    spw_cli_terminal_leave();
    code = show_process(view);
    if (code != BACK_TO_LIST) {
        return false;
    }
    spw_cli_terminal_enter(/* draws */ true);
    return true;
}

/* Handles a key. Returns false if the command should end. */
static bool obey(struct view *view, int key)
{
    switch (key) {
    case 'q':
    case 'Q':
    case SPW_CLI_KEY_QUIT:
        return false;
    case SPW_CLI_KEY_UP:
    case 'k':
        move(view, -1);
        break;
    case SPW_CLI_KEY_DOWN:
    case 'j':
        move(view, 1);
        break;
    case SPW_CLI_KEY_PAGE_UP:
        move(view, -spw_cli_screen_window(&view->screen));
        break;
    case SPW_CLI_KEY_PAGE_DOWN:
    case ' ':
        move(view, spw_cli_screen_window(&view->screen));
        break;
    case SPW_CLI_KEY_HOME:
        move(view, -SPW_CLI_SCREEN_LINES);
        break;
    case SPW_CLI_KEY_END:
        move(view, SPW_CLI_SCREEN_LINES);
        break;
    case SPW_CLI_KEY_ENTER:
        if (!enter(view)) {
            return false;
        }
        make(view, /* marks */ true);
        draw(view);
        break;
    case SPW_CLI_KEY_REDRAW:
        make(view, /* marks */ true);
        draw(view);
        break;
    case 's':
        view->settings.sort = (view->settings.sort + 1) % SPW_CLI_SORT_COUNT;
        spw_cli_list_sort(&view->running, view->settings.sort);
        move(view, 0);
        break;
    default:
        break;
    }
    return true;
}

static int64_t milliseconds(void)
{
    return (int64_t)(spw_clock_ns() / 1000000);
}

/* Handles keys until the next frame is due. Returns false if this view should end. In this case,
 * *ret_back is true if the list should be shown next. */
static bool wait_until(struct view *view, int64_t due, bool *ret_back)
{
    for (int64_t left = due - milliseconds(); left > 0; left = due - milliseconds()) {
        int key = spw_cli_terminal_key((int)left);

        if (key == SPW_CLI_KEY_BACK && view->from_list) {
            *ret_back = true;
            return false;
        }
        if (view->settings.json && key != SPW_CLI_KEY_QUIT && key != 'q') {
            continue;
        }
        if (!obey(view, key)) {
            return false;
        }
    }
    return spw_cli_terminal_key(0) != SPW_CLI_KEY_QUIT;
}

/* Shows a frame in each interval. Returns an exit code. */
static int watch(struct view *view)
{
    int64_t due = milliseconds() + view->settings.interval_ms;
    bool back = false;

    spw_cli_terminal_enter(/* draws */ !view->settings.json);
    if (view->settings.json && !wait_until(view, due, &back)) { /* rates need two readings */
        return SPW_CLI_EXIT_OK;
    }
    do {
        int64_t now = milliseconds();

        due = due + view->settings.interval_ms > now ? due + view->settings.interval_ms
                                                     : now + view->settings.interval_ms;
        if (!read_all(view)) {
            return view->from_list ? BACK_TO_LIST : SPW_CLI_EXIT_FINDINGS;
        }
        make(view, /* marks */ true);
        draw(view);
    } while (!has_ended(view) && wait_until(view, due, &back));
    spw_cli_terminal_leave();
    if (back || (view->from_list && has_ended(view))) {
        return BACK_TO_LIST;
    }
    if (has_ended(view)) {
        if (!view->settings.json) {
            spw_cli_screen_print(&view->screen);
            fflush(stdout);
        }
        fprintf(stderr, "spillway: top: process %d has ended\n", view->settings.pid);
    }
    return SPW_CLI_EXIT_OK;
}

/* ---- the text file ---- */

/* Writes the file in each interval, or once. Returns an exit code. */
static int export(struct view *view)
{
    struct spw_cli_watched *one[] = {&view->process};
    bool all = view->settings.pid == 0, back = false;
    int64_t due = milliseconds();

    spw_cli_terminal_enter(/* draws */ false);
    do {
        if (!read_all(view)) {
            return SPW_CLI_EXIT_FINDINGS;
        }
        if (!spw_cli_prometheus_write(view->settings.prometheus, all ? view->running.list : one,
                                      all ? view->running.count : 1)) {
            spw_cli_complain("top", "%s: %s", view->settings.prometheus, strerror(errno));
            return SPW_CLI_EXIT_FINDINGS;
        }
        due += view->settings.interval_ms;
    } while (!view->settings.once && !has_ended(view) && wait_until(view, due, &back));
    return SPW_CLI_EXIT_OK;
}

/* ---- the command ---- */

/* Opens the shown process, or lists all processes. On failure, writes a line to stderr and returns
 * false. */
static bool open_view(struct view *view)
{
    enum spw_cli_watch result = SPW_CLI_WATCH_OPENED;

    (void)alarm(FRAME_LIMIT_S);
    if (view->settings.pid == 0) {
        spw_cli_running_read(&view->running);
    } else {
        result = open_process(view);
    }
    (void)alarm(0);
    if (result != SPW_CLI_WATCH_OPENED) {
        spw_cli_watched_complain("top", view->settings.pid, result);
        return false;
    }
    return true;
}

/* Starts a child that shows the marked process of a list, and returns an exit code. When the child
 * ends, the memory that was used to read call sites is freed, and the limit on this memory no
 * longer applies. */
static int show_process(const struct view *list)
{
    static struct view view;
    int status = 0;
    pid_t child;

    fflush(stdout);
    child = fork();
    if (child == 0) {
        view.settings = list->settings;
        view.settings.pid = list->chosen;
        view.from_list = true;
        _exit(open_view(&view) ? watch(&view) : BACK_TO_LIST);
    }
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) {
        if (spw_cli_terminal_key(0) == SPW_CLI_KEY_QUIT) {
            (void)kill(child, SIGTERM);
        }
    }
    if (child < 0 || (WIFEXITED(status) && WEXITSTATUS(status) == SPW_CLI_EXIT_FINDINGS)) {
        return BACK_TO_LIST;
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : SPW_CLI_EXIT_OK;
}

static const char help[] =
    "usage: spillway top [PID] [--once] [--json] [--interval SECONDS] [--sort WORD]\n"
    "                    [--prometheus FILE]\n\n"
    "Shows the memory of running processes under spillway: all processes that this user may\n"
    "inspect, or one of them with its devices and largest call sites. Updates each second\n"
    "until q or Ctrl-C. The processes are not disturbed. The length of a bar is the limit: #\n"
    "is memory in use, = is memory that the pool holds free. NO_COLOR switches colours off.\n\n"
    "keys: arrows or j and k choose a process or scroll, enter shows the process, escape goes\n"
    "back to the list, s changes its order, q quits\n\n"
    "  --once              show one frame and end; rates are measured over a quarter of a\n"
    "                      second. This is the default when stdout is not a terminal\n"
    "  --json              print each frame as one line of JSON, with its time\n"
    "  --interval SECONDS  time between two frames: 0.1 to 86400 (1)\n"
    "  --sort WORD         order of the list: live, host, rate (of moves), rank or pid (live)\n"
    "  --prometheus FILE   write all counters to a text file for the textfile collector of\n"
    "                      Prometheus' node exporter, each interval, and show nothing; the\n"
    "                      name must end in .prom\n\n"
    "examples: spillway top --sort rank\n"
    "          spillway top --json --interval 10 >> memory.jsonl\n"
    "          spillway top --interval 15 --prometheus /var/lib/node_exporter/spillway.prom\n";

static bool take_interval(const struct spw_cli_arguments *from)
{
    struct settings *settings = from->settings;
    char *rest;
    double seconds = strtod(from->value, &rest);

    if (rest == from->value || *rest != '\0' ||
        !(seconds * MILLISECONDS >= INTERVAL_LEAST_MS && seconds <= INTERVAL_MOST_S)) {
        spw_cli_complain(from->command, "--interval %s: expected seconds, from 0.1 to %d",
                         from->value, INTERVAL_MOST_S);
        return false;
    }
    settings->interval_ms = (int)(seconds * MILLISECONDS + 0.5);
    return true;
}

static bool take_sort(const struct spw_cli_arguments *from)
{
    struct settings *settings = from->settings;

    for (int i = 0; i < SPW_CLI_SORT_COUNT; i++) {
        if (strcmp(from->value, spw_cli_sort_name((enum spw_cli_sort)i)) == 0) {
            settings->sort = (enum spw_cli_sort)i;
            return true;
        }
    }
    spw_cli_complain(from->command, "--sort %s: expected live, host, rate, rank or pid",
                     from->value);
    return false;
}

static bool take_prometheus(const struct spw_cli_arguments *from)
{
    struct settings *settings = from->settings;
    size_t length = strlen(from->value);

    if (length < strlen(".prom") || strcmp(from->value + length - 5, ".prom") != 0) {
        spw_cli_complain(from->command,
                         "--prometheus %s: the name must end in .prom, or the node exporter does "
                         "not read it",
                         from->value);
        return false;
    }
    settings->prometheus = from->value;
    return true;
}

static bool take_pid(const struct spw_cli_arguments *from)
{
    struct settings *settings = from->settings;

    if (settings->pid != 0) {
        return spw_cli_arguments_unexpected(from);
    }
    if (!spw_cli_process_parse(from->value, &settings->pid)) {
        spw_cli_complain(from->command, "%s: expected the number of a process", from->value);
        return false;
    }
    return true;
}

int spw_cli_command_top(int argc, char **argv)
{
    static struct view view = {.settings = {.interval_ms = MILLISECONDS}};
    struct settings *settings = &view.settings;
    const struct spw_cli_option options[] = {
        {"", .take = take_pid},
        {"once", .given = &settings->once},
        {"json", .given = &settings->json},
        {"interval", .take = take_interval},
        {"sort", .take = take_sort},
        {"prometheus", .take = take_prometheus},
        {0},
    };
    int code = spw_cli_arguments_read(argc, argv, options, help, settings);

    if (code >= 0) {
        return code;
    }
    if (settings->json && settings->prometheus != NULL) {
        spw_cli_complain(argv[0], "--json and --prometheus exclude each other");
        return SPW_CLI_EXIT_USAGE;
    }
    guard();
    if (!open_view(&view)) {
        return SPW_CLI_EXIT_FINDINGS;
    }
    if (view.settings.prometheus != NULL) {
        code = export(&view);
    } else if (view.settings.once || (!view.settings.json && !spw_cli_terminal_can_draw())) {
        code = print_once(&view) ? SPW_CLI_EXIT_OK : SPW_CLI_EXIT_FINDINGS;
    } else {
        code = watch(&view);
    }
    spw_cli_running_close(&view.running);
    spw_cli_screen_free(&view.screen);
    return code;
}
