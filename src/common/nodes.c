#include "common/nodes.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FILE_BYTES = 8192 };

/* Reads the beginning of a file below `root` as text, which is empty when it cannot be read. */
static const char *read_text(const char *root, const char *name, char text[FILE_BYTES])
{
    char path[PATH_MAX];
    ssize_t length = -1;
    int fd = -1;

    if (snprintf(path, sizeof(path), "%s%s", root, name) < (int)sizeof(path)) {
        fd = open(path, O_RDONLY | O_CLOEXEC);
    }
    if (fd >= 0) {
        length = read(fd, text, FILE_BYTES - 1);
        close(fd);
    }
    text[length > 0 ? length : 0] = '\0';
    return text;
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
        for (unsigned long node = first; node <= last && node < SPW_NODES; node++) {
            bits |= UINT64_C(1) << node;
        }
        list = *end == ',' ? end + 1 : end;
    }
    return bits;
}

/* The nodes that the process's cpuset allows; all, where the kernel does not say. */
static uint64_t allowed(const char *root)
{
    static const char name[] = "\nMems_allowed_list:";
    char text[FILE_BYTES];
    const char *line = strstr(read_text(root, "/proc/self/status", text), name);

    if (line == NULL) {
        return UINT64_MAX;
    }
    line += sizeof(name) - 1;
    return parse_list(line + strspn(line, " \t"));
}

uint64_t spw_nodes_usable(const char *root)
{
    char text[FILE_BYTES];
    uint64_t nodes = parse_list(read_text(root, "/sys/devices/system/node/has_memory", text));

    nodes &= parse_list(read_text(root, "/sys/devices/system/node/has_cpu", text));
    return nodes & allowed(root);
}
