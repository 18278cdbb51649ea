#include "driver/host_nodes.h"

#include "system/room.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FILE_BYTES = 8192 };

struct file {
    char path[PATH_MAX];
    char text[FILE_BYTES];
};

/* Reads the beginning of a file below `root` as text, which is empty when the file cannot be
 * read. */
static const char *read_text(const char *root, const char *name, struct file *file)
{
    ssize_t length = -1;
    int fd = -1;

    if (snprintf(file->path, sizeof(file->path), "%s%s", root, name) < (int)sizeof(file->path)) {
        fd = open(file->path, O_RDONLY | O_CLOEXEC);
    }
    if (fd >= 0) {
        length = read(fd, file->text, FILE_BYTES - 1);
        close(fd);
    }
    file->text[length > 0 ? length : 0] = '\0';
    return file->text;
}

/* The bits of a list such as "0-1,3". */
static uint64_t parse_list(const char *list)
{
    uint64_t bits = 0;

    while (*list >= '0' && *list <= '9') {
        char *end;
        unsigned long first = strtoul(list, &end, 10), last = first;

        if (*end == '-') {
            last = strtoul(end + 1, &end, 10);
        }
        for (unsigned long node = first; node <= last && node < SPW_HOST_NODES; node++) {
            bits |= UINT64_C(1) << node;
        }
        list = *end == ',' ? end + 1 : end;
    }
    return bits;
}

/* The nodes that the process's cpuset allows; all if the kernel does not list them. */
static uint64_t allowed(const char *root, struct file *file)
{
    static const char name[] = "\nMems_allowed_list:";
    const char *line = strstr(read_text(root, "/proc/self/status", file), name);

    if (line == NULL) {
        return UINT64_MAX;
    }
    line += sizeof(name) - 1;
    return parse_list(line + strspn(line, " \t"));
}

uint64_t spw_driver_host_nodes(const char *root)
{
    struct file SPW_ROOM *file = spw_room_take(sizeof(*file));
    uint64_t nodes;

    if (file == NULL) {
        return 0;
    }
    nodes = parse_list(read_text(root, "/sys/devices/system/node/has_memory", file));
    nodes &= parse_list(read_text(root, "/sys/devices/system/node/has_cpu", file));
    return nodes & allowed(root, file);
}
