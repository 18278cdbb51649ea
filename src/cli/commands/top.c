#include "cli/commands/list.h"
#include "cli/console/arguments.h"
#include "cli/console/json.h"
#include "cli/console/messages.h"

#include "common/process.h"
#include "common/size.h"
#include "common/utf8.h"
#include "cli/inspect/process.h"
#include "cli/inspect/call_sites.h"
#include "callsite/top_sites.h"
#include "stats/stats.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

enum { MILLISECONDS = 1000, SHORT_WAIT = 250, LINE = 512, NARROWEST = 40 };
enum { ONCE_OPTION = 256, JSON_OPTION };

struct settings {
    int pid;
    bool once;
    bool json;
    bool help;
};

/* The counters of all devices at one time. */
struct look {
    uint64_t time_ms;
    struct spw_counters counters[SPW_DEVICES_MAX];
};

struct view {
    const struct settings *settings;
    uint64_t start;         /* of the process, in ticks; another one got the pid if it differs */
    int stats_file;         /* the process may change it at any time, as sites_file */
    int sites_file;         /* -1: there is none */
    struct spw_stats stats; /* a copy */
    struct look before, now;
};

static volatile sig_atomic_t ended; /* the number of the signal; 0: none came */

/* ---- the counters ---- */

static uint64_t milliseconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * MILLISECONDS + (uint64_t)now.tv_nsec / 1000000;
}

static void take(const struct spw_stats *stats, struct look *ret_look)
{
    ret_look->time_ms = milliseconds();
    for (int i = 0; i < SPW_DEVICES_MAX && i < stats->device_count; i++) {
        const struct spw_counters *from = &stats->devices[i].counters;
        struct spw_counters *to = &ret_look->counters[i];

#define SPW_COUNTER(name, kind, help) spw_counter_set(&to->name, spw_counter_get(&from->name));
#include "common/counters.def"
#undef SPW_COUNTER
    }
}

/* False when the process has ended, even if another one got its pid. */
static bool is_alive(const struct view *view)
{
    uint64_t start;
    char state;

    return spw_process_start(view->settings->pid, &start, &state) && start == view->start &&
           state != 'Z' && state != 'X';
}

static uint64_t rate(const struct view *view, const _Atomic uint64_t *now,
                     const _Atomic uint64_t *before)
{
    uint64_t time = view->now.time_ms - view->before.time_ms;
    uint64_t more = spw_counter_get(now) - spw_counter_get(before);

    return time > 0 && spw_counter_get(now) >= spw_counter_get(before) ? more * MILLISECONDS / time
                                                                       : 0;
}

#define RATE(view, device, name)                                                                   \
    rate((view), &(view)->now.counters[device].name, &(view)->before.counters[device].name)

static bool is_used(const struct spw_counters *counters)
{
    return spw_counter_get(&counters->live_peak_bytes) > 0 ||
           spw_counter_get(&counters->passed_allocs) > 0 || spw_counter_get(&counters->ooms) > 0;
}

/* ---- text ---- */

/* Columns of the terminal, where lines are cut so that they do not wrap; 0: no limit. */
static int width;

static void put(const char *format, ...) __attribute__((format(printf, 1, 2)));

static void put(const char *format, ...)
{
    char line[LINE];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(line, sizeof(line), format, arguments);
    va_end(arguments);
    if (width > 0 && strlen(line) > (size_t)width) {
        line[width] = '\0';
    }
    spw_utf8_plain(line, /* keep */ "");
    puts(line);
}

/* Prints a current value and its peak. */
static void put_pair(const char *name, const _Atomic uint64_t *now, const _Atomic uint64_t *peak,
                     const char *more)
{
    char here[SPW_SIZE_TEXT], top[SPW_SIZE_TEXT];

    put("  %-10s %12s   peak %12s%s", name, spw_size_text(spw_counter_get(now), here),
        spw_size_text(spw_counter_get(peak), top), more);
}

static void put_figures(const struct view *view, int device)
{
    const struct spw_counters *counters = &view->now.counters[device];
    char limit[SPW_SIZE_TEXT], other[SPW_SIZE_TEXT], more[64];

    put("device %d, limit %s", device,
        spw_size_text(spw_counter_get(&counters->limit_bytes), limit));
    put_pair("live", &counters->live_bytes, &counters->live_peak_bytes, "");
    put_pair("committed", &counters->committed_bytes, &counters->committed_peak_bytes, "");
    snprintf(more, sizeof(more), "   limit %12s",
             spw_size_text(spw_counter_get(&counters->host_limit_bytes), limit));
    put_pair("host", &counters->host_bytes, &counters->host_peak_bytes, more);
    put("  %-10s %12s   locked by the program, %s passed to the driver", "pinned",
        spw_size_text(spw_counter_get(&counters->pinned_bytes), limit),
        spw_size_text(spw_counter_get(&counters->passed_bytes), other));
    put("  %-10s %12" PRIu64 " allocations, %" PRIu64 " frees, %s to the host, %s back",
        "per second", RATE(view, device, allocs), RATE(view, device, frees),
        spw_size_text(RATE(view, device, spilled_bytes), limit),
        spw_size_text(RATE(view, device, promoted_bytes), other));
    put("  %-10s %12" PRIu64 " allocations, %" PRIu64 " steals, %" PRIu64 " moves, %" PRIu64
        " out of memory",
        "so far", spw_counter_get(&counters->allocs), spw_counter_get(&counters->steals),
        spw_counter_get(&counters->moves), spw_counter_get(&counters->ooms));
}

static void put_sites(const struct spw_callsite_shm *share, int device)
{
    struct spw_callsite_holding holding;
    char size[SPW_SIZE_TEXT];

    if (share == NULL || (uint32_t)device >= share->devices) {
        return;
    }
    spw_callsite_holding(&share->charges[device], &holding);
    put("  held by %" PRIu64 " call site%s%s", holding.sites, holding.sites == 1 ? "" : "s",
        holding.sites > SPW_CALLSITE_HOLDERS ? ", most by these" : "");
    for (int i = 0; i < holding.count; i++) {
        const struct spw_callsite_holder *holder = &holding.holders[i];
        uint64_t permille = holding.bytes > 0 ? holder->bytes * 1000 / holding.bytes : 0;

        put("  %12s %3" PRIu64 ".%" PRIu64 " %%  %7" PRIu64 " block%s  %s",
            spw_size_text(holder->bytes, size), permille / 10, permille % 10, holder->blocks,
            holder->blocks == 1 ? " " : "s", holder->label);
    }
}

static void show(const struct view *view, const struct spw_callsite_shm *share)
{
    const struct spw_stats *stats = &view->stats;
    bool any = false;

    put("%s (pid %d), mode %s%s%s", stats->process, view->settings->pid, stats->mode,
        stats->policy[0] != '\0' ? ", policy " : "", stats->policy);
    for (int i = 0; i < stats->device_count && i < SPW_DEVICES_MAX; i++) {
        if (is_used(&view->now.counters[i])) {
            put("%s", "");
            put_figures(view, i);
            put_sites(share, i);
            any = true;
        }
    }
    if (!any) {
        put("%s", "no device memory is used yet");
    }
}

/* ---- JSON ---- */

static void add_sites(cJSON *device, const struct spw_callsite_shm *share, int ordinal)
{
    cJSON *rows = cJSON_AddArrayToObject(device, "sites");
    struct spw_callsite_holding holding;

    if (share == NULL || (uint32_t)ordinal >= share->devices) {
        return;
    }
    spw_callsite_holding(&share->charges[ordinal], &holding);
    for (int i = 0; i < holding.count; i++) {
        cJSON *row = cJSON_CreateObject();

        cJSON_AddNumberToObject(row, "id", holding.holders[i].site);
        cJSON_AddNumberToObject(row, "bytes", (double)holding.holders[i].bytes);
        cJSON_AddNumberToObject(row, "blocks", (double)holding.holders[i].blocks);
        cJSON_AddStringToObject(row, "label", holding.holders[i].label);
        cJSON_AddItemToArray(rows, row);
    }
}

static void add_device(cJSON *devices, const struct view *view,
                       const struct spw_callsite_shm *share, int ordinal)
{
    const struct spw_counters *counters = &view->now.counters[ordinal];
    cJSON *device = cJSON_CreateObject();
    cJSON *rates;

    cJSON_AddNumberToObject(device, "ordinal", ordinal);
#define SPW_COUNTER(name, kind, help)                                                              \
    cJSON_AddNumberToObject(device, #name, (double)spw_counter_get(&counters->name));
#include "common/counters.def"
#undef SPW_COUNTER
    rates = cJSON_AddObjectToObject(device, "per_second");
    cJSON_AddNumberToObject(rates, "allocs", (double)RATE(view, ordinal, allocs));
    cJSON_AddNumberToObject(rates, "frees", (double)RATE(view, ordinal, frees));
    cJSON_AddNumberToObject(rates, "spilled_bytes", (double)RATE(view, ordinal, spilled_bytes));
    cJSON_AddNumberToObject(rates, "promoted_bytes", (double)RATE(view, ordinal, promoted_bytes));
    add_sites(device, share, ordinal);
    cJSON_AddItemToArray(devices, device);
}

/* Prints a frame as one line of JSON. */
static void show_json(const struct view *view, const struct spw_callsite_shm *share)
{
    const struct spw_stats *stats = &view->stats;
    cJSON *root = cJSON_CreateObject();
    cJSON *devices;

    cJSON_AddNumberToObject(root, "pid", view->settings->pid);
    cJSON_AddStringToObject(root, "process", stats->process);
    cJSON_AddStringToObject(root, "mode", stats->mode);
    cJSON_AddStringToObject(root, "policy", stats->policy);
    devices = cJSON_AddArrayToObject(root, "devices");
    for (int i = 0; i < stats->device_count && i < SPW_DEVICES_MAX; i++) {
        add_device(devices, view, share, i);
    }
    spw_cli_json_print(root, /* one_line */ true);
}

/* ---- limits, because the process may be hostile ---- */

enum { FRAME_LIMIT_S = 30, MEMORY_MIB = 1024, FRAME_BYTES = 1 << 20 };

/* The terminal's settings, which are restored at the end. */
static struct {
    bool is_terminal;
    struct termios before;
} terminal;

static void restore_terminal(void)
{
    if (terminal.is_terminal) {
        (void)tcsetattr(STDIN_FILENO, TCSANOW, &terminal.before);
    }
}

static void give_up(int number)
{
    static const char text[] =
        "spillway: top: the memory of the process takes too long to read: it may be damaged\n";

    (void)number;
    restore_terminal();
    (void)!write(STDERR_FILENO, text, sizeof(text) - 1);
    _exit(SPW_CLI_EXIT_FINDINGS);
}

/* Limits the time of a frame, which alarm starts, and the memory of this process: to demangle a
 * crafted name can take very long, and any amount of memory. */
static void guard(void)
{
    const struct sigaction action = {.sa_handler = give_up};
    static char output[FRAME_BYTES];
    unsigned long pages = 0;
    struct rlimit limit;
    FILE *file = fopen("/proc/self/statm", "re");

    /* Output is buffered and written after the limited time, because its reader may be slow. */
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

/* Shows one frame. False, with one line on stderr, when the statistics cannot be read any more. */
static bool frame(struct view *view)
{
    struct spw_callsite_shm *share = NULL;

    (void)alarm(FRAME_LIMIT_S);
    view->before = view->now;
    if (!spw_stats_read(view->stats_file, &view->stats)) {
        (void)alarm(0);
        spw_cli_complain("top", "process %d: its statistics are damaged", view->settings->pid);
        return false;
    }
    take(&view->stats, &view->now);
    if (view->sites_file >= 0) {
        share = spw_cli_call_sites_read(view->sites_file);
    }
    if (view->settings->json) {
        show_json(view, share);
    } else {
        show(view, share);
    }
    (void)alarm(0);
    fflush(stdout);
    spw_cli_call_sites_close(share);
    return true;
}

static void end(int number)
{
    ended = number;
}

/* Waits for the next frame. False when the user ends the command. */
static bool wait_for(int timeout_ms)
{
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    char key = '\0';

    if (poll(&input, isatty(STDIN_FILENO) != 0 ? 1 : 0, timeout_ms) > 0 &&
        read(STDIN_FILENO, &key, 1) <= 0) {
        return false;
    }
    return ended == 0 && key != 'q' && key != 'Q';
}

/* Shows a frame each second. With text output, a frame replaces the one before. False on an error.
 */
static bool watch(struct view *view)
{
    const struct sigaction action = {.sa_handler = end};
    bool foreground = isatty(STDIN_FILENO) != 0 && tcgetpgrp(STDIN_FILENO) == getpgrp();
    struct termios plain;
    struct winsize size;
    bool shown;

    (void)sigaction(SIGINT, &action, NULL);
    (void)sigaction(SIGTERM, &action, NULL);
    terminal.is_terminal = foreground && tcgetattr(STDIN_FILENO, &terminal.before) == 0;
    if (terminal.is_terminal) {
        plain = terminal.before;
        plain.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
        (void)tcsetattr(STDIN_FILENO, TCSANOW, &plain);
    }
    do {
        if (!view->settings->json) {
            width = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col >= NARROWEST
                        ? size.ws_col
                        : 0;
            fputs("\033[H\033[J", stdout);
        }
        shown = frame(view);
    } while (shown && is_alive(view) && wait_for(MILLISECONDS));
    restore_terminal();
    if (shown && !is_alive(view)) {
        fprintf(stderr, "spillway: top: process %d has ended\n", view->settings->pid);
    }
    return shown;
}

/* ---- the command ---- */

/* Finds the files of the process. False, with one line on stderr, when there are none. */
static bool find(int pid, char ret_stats[SPW_CLI_PROCESS_PATH],
                 char ret_sites[SPW_CLI_PROCESS_PATH])
{
    char descendants[256];

    switch (spw_cli_process_find(pid, ret_stats, ret_sites)) {
    case SPW_CLI_FOUND_NO_PROCESS:
        spw_cli_complain("top", "there is no process %d", pid);
        return false;
    case SPW_CLI_FOUND_DENIED:
        spw_cli_complain(
            "top",
            "process %d may not be read: only its user and root may, and not from inside "
            "another container",
            pid);
        return false;
    case SPW_CLI_FOUND_NOTHING:
        spw_cli_process_descendants(pid, descendants, sizeof(descendants));
        spw_cli_complain("top",
                         "process %d does not run under spillway, or does not use CUDA yet%s%s%s",
                         pid, descendants[0] != '\0' ? " (descendants that do: " : "", descendants,
                         descendants[0] != '\0' ? ")" : "");
        return false;
    default:
        return true;
    }
}

static bool open_view(struct view *view)
{
    char stats[SPW_CLI_PROCESS_PATH], sites[SPW_CLI_PROCESS_PATH], state;
    int pid = view->settings->pid;

    if (!find(pid, stats, sites)) {
        return false;
    }
    view->sites_file = -1;
    view->stats_file = spw_cli_process_open(pid, stats);
    if (view->stats_file < 0) {
        spw_cli_complain("top", "process %d: %s", pid,
                         errno == EACCES  ? "only its user and root may look"
                         : errno == EPERM ? "the file of its statistics belongs to another user"
                                          : "its statistics cannot be opened");
        return false;
    }
    if (!spw_process_start(pid, &view->start, &state) ||
        !spw_stats_read(view->stats_file, &view->stats)) {
        spw_cli_complain("top", "process %d: it runs another version of spillway", pid);
        return false;
    }
    if (view->stats.pid != spw_cli_process_own_pid(pid)) {
        spw_cli_complain("top", "process %d: its statistics belong to another process", pid);
        return false;
    }
    if (sites[0] == '\0') {
        snprintf(sites, sizeof(sites), "%s", view->stats.sites);
    }
    if (sites[0] != '\0') {
        view->sites_file = spw_cli_process_open(pid, sites);
    }
    return true;
}

static void print_help(void)
{
    fputs("usage: spillway top PID [--once] [--json]\n\n"
          "Shows the memory of a running process under spillway: each device, and the call sites\n"
          "that hold most. Updates each second until q or Ctrl-C. The process is not disturbed.\n\n"
          "  --once  show one frame and end; rates are measured over a quarter of a second.\n"
          "          This is the default when stdout is not a terminal\n"
          "  --json  print each frame as one line of JSON\n",
          stdout);
}

static bool parse_pid(const char *text, int *ret_pid)
{
    char *rest;
    long pid = strtol(text, &rest, 10);

    *ret_pid = (int)pid;
    return *rest == '\0' && pid > 0 && pid <= INT_MAX;
}

/* Takes one argument. False, with one line on stderr, when it is not usable. */
static bool take_argument(const struct spw_cli_arguments *from, int found, void *to)
{
    struct settings *settings = to;

    if (found == SPW_CLI_ARGUMENT_OPERAND && settings->pid != 0) {
        spw_cli_arguments_unexpected(from);
        return false;
    }
    if (found == SPW_CLI_ARGUMENT_OPERAND && !parse_pid(from->value, &settings->pid)) {
        spw_cli_complain(from->command, "%s: expected the number of a process", from->value);
        return false;
    }
    settings->once |= found == ONCE_OPTION;
    settings->json |= found == JSON_OPTION;
    settings->help |= found == SPW_CLI_ARGUMENT_HELP;
    return true;
}

static bool parse(int argc, char **argv, struct settings *ret_settings)
{
    static const struct option options[] = {
        {"once", no_argument, NULL, ONCE_OPTION},
        {"json", no_argument, NULL, JSON_OPTION},
        SPW_CLI_HELP_OPTION,
        {0},
    };

    *ret_settings = (struct settings){.pid = 0};
    if (!spw_cli_arguments_each(argc, argv, options, take_argument, ret_settings)) {
        return false;
    }
    if (ret_settings->pid == 0 && !ret_settings->help) {
        spw_cli_complain(argv[0], "expected the number of a process (see spillway top --help)");
        return false;
    }
    return true;
}

int spw_cli_command_top(int argc, char **argv)
{
    static struct view view;
    struct settings settings;
    bool opened, shown;

    if (!parse(argc, argv, &settings)) {
        return SPW_CLI_EXIT_USAGE;
    }
    if (settings.help) {
        print_help();
        return SPW_CLI_EXIT_OK;
    }
    view.settings = &settings;
    guard();
    (void)alarm(FRAME_LIMIT_S);
    opened = open_view(&view);
    (void)alarm(0);
    if (!opened) {
        return SPW_CLI_EXIT_FINDINGS;
    }
    take(&view.stats, &view.now);
    if (settings.once || (!settings.json && isatty(STDOUT_FILENO) == 0)) {
        (void)poll(NULL, 0, SHORT_WAIT);
        shown = frame(&view);
    } else {
        shown = watch(&view);
    }
    return shown ? SPW_CLI_EXIT_OK : SPW_CLI_EXIT_FINDINGS;
}
