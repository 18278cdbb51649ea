/* Tests whose body must have a process of its own, because it changes what exists once in a
 * process: the environment, stderr, the statistics. Included once by a test program. */
#pragma once

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* An assertion inside a child; to stdout, for stderr is often a file by then. */
#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            dprintf(STDOUT_FILENO, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                 \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)

/* Runs `body` in a child, which must end with exit code 0. Returns its pid. */
static pid_t in_child(void (*body)(void))
{
    int status = -1;
    pid_t child = fork();

    if (child == 0) {
        body();
        _exit(0);
    }
    waitpid(child, &status, 0);
    assert_int_equal(status, 0);
    return child;
}

/* Makes stderr the empty file `path`. */
static inline void redirect_errors(const char *path)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0600);

    dup2(fd, STDERR_FILENO);
    close(fd);
}

/* The beginning of a file; "" when there is none. Static storage. */
static inline const char *content(const char *path)
{
    static char text[65536];
    int fd = open(path, O_RDONLY);
    ssize_t length = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);

    if (fd >= 0) {
        close(fd);
    }
    text[length > 0 ? length : 0] = '\0';
    return text;
}
