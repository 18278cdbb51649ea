#include "stats/stats.h"

#include "base/fd.h"
#include "base/log.h"
#include "stats/path.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILE_PATH = SPW_STATS_PATH + 32 };

/* Text on its way to a file, through a buffer on the stack. */
struct writer {
    int fd;
    bool failed;
    size_t used;
    char buffer[4096];
};

static void flush(struct writer *writer)
{
    if (!spw_fd_write(writer->fd, writer->buffer, writer->used)) {
        writer->failed = true;
    }
    writer->used = 0;
}

static void put(struct writer *writer, const char *text)
{
    for (; *text != '\0'; text++) {
        if (writer->used == sizeof(writer->buffer)) {
            flush(writer);
        }
        writer->buffer[writer->used++] = *text;
    }
}

static void put_number(struct writer *writer, uint64_t number)
{
    char text[32];

    snprintf(text, sizeof(text), "%" PRIu64, number);
    put(writer, text);
}

/* The length of the well-formed UTF-8 sequence at `text`, 0 when there is none. */
static size_t utf8_length(const unsigned char *text)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t length = text[0] < 0x80 ? 1 : text[0] >> 5 == 6 ? 2 : text[0] >> 4 == 14 ? 3 : 4;
    uint32_t code;

    if (length == 1) {
        return 1;
    }
    if (length == 4 && text[0] >> 3 != 30) {
        return 0;
    }
    code = text[0] & (0x7FU >> length);
    for (size_t i = 1; i < length; i++) {
        if (text[i] >> 6 != 2) {
            return 0;
        }
        code = code << 6 | (text[i] & 0x3FU);
    }
    if (code < least[length] || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) {
        return 0;
    }
    return length;
}

/* A JSON string. Bytes that are no UTF-8 (names of files may be anything) become U+FFFD. */
static void put_string(struct writer *writer, const char *text)
{
    put(writer, "\"");
    while (*text != '\0') {
        unsigned char byte = (unsigned char)*text;
        size_t length = utf8_length((const unsigned char *)text);
        char piece[8] = "\\ufffd";

        if (byte == '"' || byte == '\\') {
            snprintf(piece, sizeof(piece), "\\%c", byte);
        } else if (byte < 0x20) {
            snprintf(piece, sizeof(piece), "\\u%04x", byte);
        } else if (length > 0) {
            memcpy(piece, text, length);
            piece[length] = '\0';
        }
        put(writer, piece);
        text += length > 0 ? length : 1;
    }
    put(writer, "\"");
}

static void put_key(struct writer *writer, const char *key)
{
    put(writer, ", ");
    put_string(writer, key);
    put(writer, ": ");
}

static void put_driver_calls(struct writer *writer, const struct spw_stats *stats,
                             const struct spw_stats_device *device)
{
    bool first = true;

    put(writer, ", \"driver_calls\": {");
    for (int i = 0; i < SPW_STATS_CALLS && stats->call_names[i][0] != '\0'; i++) {
        uint64_t count = spw_counter_get(&device->driver_calls[i]);

        if (count == 0) {
            continue;
        }
        put(writer, first ? "" : ", ");
        put_string(writer, stats->call_names[i]);
        put(writer, ": ");
        put_number(writer, count);
        first = false;
    }
    put(writer, "}");
}

static void put_device(struct writer *writer, const struct spw_stats *stats, int ordinal)
{
    const struct spw_stats_device *device = &stats->devices[ordinal];

    put(writer, "{\"ordinal\": ");
    put_number(writer, (uint64_t)ordinal);
#define SPW_COUNTER(name, kind, help)                                                              \
    put_key(writer, #name);                                                                        \
    put_number(writer, spw_counter_get(&device->counters.name));
#include "base/counters.def"
#undef SPW_COUNTER
    put_driver_calls(writer, stats, device);
    put(writer, "}");
}

/* The first bytes are what spw_stats_path_owner recognises. */
static void put_stats(struct writer *writer, const struct spw_stats *stats)
{
    put(writer, "{\"schema\": 1, \"pid\": ");
    put_number(writer, (uint64_t)stats->pid);
    put_key(writer, "mode");
    put_string(writer, stats->mode);
    put_key(writer, "why");
    put_string(writer, stats->why);
    put_key(writer, "process");
    put_string(writer, stats->process);
    put(writer, ", \"devices\": [");
    for (int i = 0; i < stats->device_count && i < SPW_STATS_DEVICES; i++) {
        put(writer, i == 0 ? "\n  " : ",\n  ");
        put_device(writer, stats, i);
    }
    put(writer, "\n]}\n");
}

/* Writes and closes; false with errno set when it went wrong. */
static bool write_to(int fd, const struct spw_stats *stats)
{
    struct writer writer = {.fd = fd};

    put_stats(&writer, stats);
    flush(&writer);
    return close(fd) == 0 && !writer.failed;
}

/* Gives the finished `temporary` its name: a new one by link, which only one process can do, or by
 * rename when it is this process that has it already. */
static bool publish(struct spw_stats *stats, const char *temporary)
{
    char with_pid[FILE_PATH];

    if (atomic_load(&stats->file) == SPW_STATS_FILE_NONE) {
        if (link(temporary, stats->path) == 0) {
            atomic_store(&stats->file, SPW_STATS_FILE_PLAIN);
            return unlink(temporary) == 0;
        }
        /* A file system without links takes the plain name: nobody can claim it there. */
        if (errno != EEXIST || spw_stats_path_owner(stats->path) == stats->pid) {
            atomic_store(&stats->file, SPW_STATS_FILE_PLAIN);
        } else {
            atomic_store(&stats->file, SPW_STATS_FILE_PID);
        }
    }
    if (atomic_load(&stats->file) == SPW_STATS_FILE_PLAIN) {
        return rename(temporary, stats->path) == 0;
    }
    snprintf(with_pid, sizeof(with_pid), "%s.%d", stats->path, stats->pid);
    return rename(temporary, with_pid) == 0;
}

/* Devices and pipes have no temporary name beside them; /dev/stderr may lead to a regular file. */
static bool is_special(const char *path)
{
    struct stat status;

    if (stat(path, &status) != 0) {
        return false;
    }
    return !S_ISREG(status.st_mode) || strncmp(path, "/dev/std", 8) == 0 ||
           strncmp(path, "/dev/fd/", 8) == 0 || strncmp(path, "/proc/", 6) == 0;
}

static bool write_special(const struct spw_stats *stats)
{
    int fd = open(stats->path, O_WRONLY | O_APPEND | O_CLOEXEC | O_NONBLOCK);

    return fd >= 0 && write_to(fd, stats);
}

static bool write_regular(struct spw_stats *stats)
{
    static _Atomic unsigned count; /* two threads may run out of memory at once */
    char temporary[FILE_PATH];
    int saved;
    int fd;

    snprintf(temporary, sizeof(temporary), "%s.%d.%u.tmp", stats->path, (int)getpid(),
             atomic_fetch_add(&count, 1));
    fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0) {
        return false;
    }
    if (write_to(fd, stats) && publish(stats, temporary)) {
        return true;
    }
    saved = errno;
    unlink(temporary);
    errno = saved;
    return false;
}

bool spw_stats_write(struct spw_stats *stats)
{
    int saved = errno;
    bool written;

    if (stats->path[0] == '\0') {
        return true;
    }
    written = is_special(stats->path) ? write_special(stats) : write_regular(stats);
    if (!written) {
        spw_say("cannot write statistics to %s: %s", stats->path, strerror(errno));
    }
    errno = saved;
    return written;
}
