#include "stats/process.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { NANOSECONDS = 1000000000, CLOCK_READS = 4 };

/* Reads the beginning of a small file of /proc; always terminated. Returns the bytes read. */
static size_t read_start(const char *path, char *text, size_t capacity)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = fd < 0 ? 0 : read(fd, text, capacity - 1);

    if (fd >= 0) {
        close(fd);
    }
    text[length > 0 ? length : 0] = '\0';
    return length > 0 ? (size_t)length : 0;
}

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash != NULL && slash[1] != '\0' ? slash + 1 : path;
}

static bool is_script(const char *word)
{
    size_t length = strlen(word);

    return length > 3 && strcmp(word + length - 3, ".py") == 0;
}

/* The script or module among the arguments; NULL when there is none, or only code (-c). */
static const char *find_script(const char *command, const char *end)
{
    const char *first = command + strlen(command) + 1;
    bool module = false;

    for (const char *word = first; word < end; word += strlen(word) + 1) {
        if (strcmp(word, "-c") == 0) {
            return NULL;
        }
        if (*word != '-' && *word != '\0' && (word == first || module || is_script(word))) {
            return word;
        }
        module = strcmp(word, "-m") == 0;
    }
    return NULL;
}

void spw_stats_process_name_of(const char *command, size_t bytes, char *name, size_t capacity)
{
    const char *script = bytes > 0 ? find_script(command, command + bytes) : NULL;

    if (script != NULL) {
        snprintf(name, capacity, "%s %s", last_part(command), last_part(script));
    } else {
        snprintf(name, capacity, "%s", bytes > 0 ? last_part(command) : "?");
    }
}

void spw_stats_process_program(char *name, size_t capacity)
{
    char arguments[1024];
    size_t length = read_start("/proc/self/cmdline", arguments, sizeof(arguments));
    const char *program = last_part(arguments);
    const char *script = length > 0 ? find_script(arguments, arguments + length) : NULL;
    bool runs = script != NULL && (is_script(script) || strncmp(program, "python", 6) == 0);

    snprintf(name, capacity, "%s", runs ? last_part(script) : program);
}

void spw_stats_process_name(char *name, size_t capacity)
{
    char arguments[1024];
    size_t length = read_start("/proc/self/cmdline", arguments, sizeof(arguments));

    spw_stats_process_name_of(arguments, length, name, capacity);
}

/* Steps over `count` fields separated by single spaces. */
static const char *skip_fields(const char *text, int count)
{
    for (; count > 0 && text != NULL; count--) {
        text = strchr(text, ' ');
        text = text != NULL ? text + 1 : NULL;
    }
    return text;
}

bool spw_stats_process_start(int pid, uint64_t *ret_ticks, char *ret_state)
{
    enum { FIELDS_TO_STATE = 1, FIELDS_TO_START = 19 };
    char path[64];
    char text[1024];
    const char *state;
    const char *start;
    uint64_t ticks = 0;

    snprintf(path, sizeof(path), "/proc/%d/stat", pid);
    read_start(path, text, sizeof(text));
    state = strrchr(text, ')'); /* the name before it may hold anything */
    state = state != NULL ? skip_fields(state, FIELDS_TO_STATE) : NULL;
    start = skip_fields(state, FIELDS_TO_START);
    if (start == NULL) {
        return false;
    }
    for (; *start >= '0' && *start <= '9'; start++) {
        ticks = ticks * 10 + (uint64_t)(*start - '0');
    }
    *ret_state = *state;
    *ret_ticks = ticks;
    return true;
}

static int64_t read_clock(clockid_t clock)
{
    struct timespec time;

    clock_gettime(clock, &time);
    return time.tv_sec * (int64_t)NANOSECONDS + time.tv_nsec;
}

/* When the machine was booted, by the wall clock. A thread that loses its processor between the two
 * clocks must not find a later time, by which files of this run would be older than the run. */
static int64_t boot_time(void)
{
    int64_t found = INT64_MAX, least = INT64_MAX;

    for (int i = 0; i < CLOCK_READS; i++) {
        int64_t now = read_clock(CLOCK_REALTIME);
        int64_t since = read_clock(CLOCK_BOOTTIME);
        int64_t gap = read_clock(CLOCK_REALTIME) - now;

        if (gap >= 0 && gap < least) {
            least = gap;
            found = now - since;
        }
    }
    return found != INT64_MAX ? found : read_clock(CLOCK_REALTIME) - read_clock(CLOCK_BOOTTIME);
}

struct timespec spw_stats_process_start_time(uint64_t ticks)
{
    uint64_t tick = NANOSECONDS / (uint64_t)sysconf(_SC_CLK_TCK);
    int64_t began = boot_time() + (int64_t)((ticks + 1) * tick);

    return (struct timespec){.tv_sec = began / NANOSECONDS, .tv_nsec = began % NANOSECONDS};
}
