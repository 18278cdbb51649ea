#include "stats/process.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

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
