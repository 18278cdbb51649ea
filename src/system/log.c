#include "system/log.h"

#include "common/options.h"
#include "system/create.h"
#include "system/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LINE_BYTES = 1024 };

/* The target of messages. A program may close every descriptor it knows and open files of its own,
 * so the log file is recognised by device and inode before each line. */
static struct {
    _Atomic int level;
    _Atomic int file; /* 0: none, messages go to stderr */
    dev_t device;
    ino_t inode;
} target;

static int target_fd(void)
{
    int file = atomic_load_explicit(&target.file, memory_order_acquire);
    struct stat now;

    if (file == 0 || fstat(file, &now) != 0 || now.st_dev != target.device ||
        now.st_ino != target.inode) {
        return STDERR_FILENO;
    }
    return file;
}

static bool write_line(int fd, const char *format, va_list arguments)
{
    char line[LINE_BYTES] = "spillway: ";

    return spw_fd_write_line(fd, line, sizeof(line), format, arguments);
}

bool spw_log_enabled(enum spw_log_level level)
{
    return (int)level <= atomic_load_explicit(&target.level, memory_order_relaxed);
}

void spw_log(enum spw_log_level level, const char *format, ...)
{
    int saved = errno, fd;
    va_list arguments;
    bool written;

    if (!spw_log_enabled(level)) {
        return;
    }
    fd = target_fd();
    va_start(arguments, format);
    written = write_line(fd, format, arguments);
    va_end(arguments);
    if (!written && fd != STDERR_FILENO) {
        va_start(arguments, format);
        (void)write_line(STDERR_FILENO, format, arguments);
        va_end(arguments);
    }
    errno = saved;
}

void spw_log_always(const char *format, ...)
{
    int saved = errno;
    va_list arguments;

    va_start(arguments, format);
    (void)write_line(STDERR_FILENO, format, arguments);
    va_end(arguments);
    errno = saved;
}

static void open_file(const char *path)
{
    int fd = spw_create_open(path, O_WRONLY | O_APPEND | O_CREAT, 0644);
    struct stat status;

    if (fd < 0) {
        spw_log_always("SPILLWAY_LOG: cannot open %s: %s; logging to stderr", path,
                       spw_create_problem(path));
        return;
    }
    fd = spw_fd_park(fd);
    if (fstat(fd, &status) != 0) {
        close(fd);
        return;
    }
    target.device = status.st_dev;
    target.inode = status.st_ino;
    atomic_store_explicit(&target.file, fd, memory_order_release);
}

void spw_log_init(void)
{
    char complaint[SPW_COMPLAINT_TEXT];
    struct spw_option_value value =
        spw_option_get(SPW_OPT_SPILLWAY_LOG, complaint, sizeof(complaint));

    atomic_store_explicit(&target.level, value.word, memory_order_relaxed);
    if (complaint[0] != '\0') {
        spw_log_always("%s", complaint);
    }
    if (value.text != NULL) {
        open_file(value.text);
    }
}
