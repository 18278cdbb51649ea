#include "system/pid.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { NANOSECONDS = 1000000000, CLOCK_READS = 4 };

/* Steps over `count` fields separated by single spaces. */
static const char *skip_fields(const char *text, int count)
{
    for (; count > 0 && text != NULL; count--) {
        text = strchr(text, ' ');
        text = text != NULL ? text + 1 : NULL;
    }
    return text;
}

/* Reads the beginning of a file as text. False if the file cannot be opened. */
static bool read_text(const char *path, char *text, size_t capacity)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length;

    if (fd < 0) {
        return false;
    }
    length = read(fd, text, capacity - 1);
    close(fd);
    text[length > 0 ? length : 0] = '\0';
    return true;
}

/* Reads /proc/PID/stat, from the process's state on; NULL when there is no such process. */
static const char *read_state(int pid, char *text, size_t capacity)
{
    char path[64];
    const char *name_end;

    if (pid == 0) {
        snprintf(path, sizeof(path), "/proc/self/stat");
    } else {
        snprintf(path, sizeof(path), "/proc/%d/stat", pid);
    }
    if (!read_text(path, text, capacity)) {
        return NULL;
    }
    name_end = strrchr(text, ')'); /* the name may hold anything */
    return name_end != NULL ? skip_fields(name_end, 1) : NULL;
}

static uint64_t take_number(const char *text)
{
    uint64_t number = 0;

    for (; *text >= '0' && *text <= '9'; text++) {
        number = number * 10 + (uint64_t)(*text - '0');
    }
    return number;
}

bool spw_pid_start(int pid, uint64_t *ret_ticks, char *ret_state)
{
    enum { FIELDS_TO_START = 19 };
    char text[1024];
    const char *state = read_state(pid, text, sizeof(text));
    const char *start = skip_fields(state, FIELDS_TO_START);

    if (start == NULL) {
        return false;
    }
    *ret_state = *state;
    *ret_ticks = take_number(start);
    return true;
}

bool spw_pid_work(int pid, uint64_t *ret_ticks, char *ret_state)
{
    enum { FIELDS_TO_TIMES = 11, TIMES = 4 };
    char text[1024];
    const char *state = read_state(pid, text, sizeof(text));
    const char *time = skip_fields(state, FIELDS_TO_TIMES);
    uint64_t ticks = 0;

    for (int i = 0; i < TIMES && time != NULL; i++) {
        ticks += take_number(time);
        time = skip_fields(time, 1);
    }
    if (time == NULL) {
        return false;
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

/* The time of the boot by the wall clock, from the two readings that are closest together. A delay
 * between them makes the result earlier, never later: with a later result, files of this run would
 * seem older than the run. */
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

struct timespec spw_pid_start_time(uint64_t ticks)
{
    uint64_t tick = NANOSECONDS / (uint64_t)sysconf(_SC_CLK_TCK);
    int64_t began = boot_time() + (int64_t)((ticks + 1) * tick);

    return (struct timespec){.tv_sec = began / NANOSECONDS, .tv_nsec = began % NANOSECONDS};
}

uint64_t spw_pid_anonymous_bytes(void)
{
    char text[256];
    const char *resident =
        read_text("/proc/self/statm", text, sizeof(text)) ? skip_fields(text, 1) : NULL;
    const char *shared = skip_fields(resident, 1);
    uint64_t all = resident != NULL ? take_number(resident) : 0;
    uint64_t part = shared != NULL ? take_number(shared) : all;

    return all > part ? (all - part) * (uint64_t)sysconf(_SC_PAGESIZE) : 0;
}
