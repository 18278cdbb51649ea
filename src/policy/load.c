/* Reads a policy from a file, and destroys policies. */
#include "policy/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Reads up to `capacity` bytes; negative on an error. */
static ssize_t read_all(int fd, char *text, size_t capacity)
{
    size_t used = 0;

    while (used < capacity) {
        ssize_t length = read(fd, text + used, capacity - used);

        if (length == 0) {
            break;
        }
        if (length < 0 && errno != EINTR) {
            return -1;
        }
        used += length > 0 ? (size_t)length : 0;
    }
    return (ssize_t)used;
}

static struct spw_policy *load(int fd, const struct spw_json *json, char *text,
                               struct spw_policy_reader *reader)
{
    struct stat status;
    ssize_t length;

    if (fstat(fd, &status) == 0 && S_ISDIR(status.st_mode)) {
        spw_policy_complain(reader, 0, "it is a directory, expected a JSON file");
        return NULL;
    }
    length = read_all(fd, text, SPW_POLICY_FILE_BYTES + 1);
    if (length < 0) {
        spw_policy_complain(reader, 0, "it cannot be read (%s), expected a JSON file",
                            strerror(errno));
        return NULL;
    }
    if (length > SPW_POLICY_FILE_BYTES) {
        spw_policy_complain(reader, 0, "the file is too large, expected at most 1 MiB");
        return NULL;
    }
    return spw_policy_parse(text, (size_t)length, json, reader->complaints);
}

struct spw_policy *spw_policy_load(const char *path, const struct spw_json *json,
                                   struct spw_policy_complaints *ret_complaints)
{
    struct spw_policy_reader reader = {.complaints = ret_complaints};
    struct spw_policy *policy = NULL;
    char *text = malloc(SPW_POLICY_FILE_BYTES + 1);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);

    *ret_complaints = (struct spw_policy_complaints){0};
    if (fd < 0) {
        spw_policy_complain(&reader, 0,
                            "it cannot be opened (%s), expected a JSON file or a shipped policy",
                            strerror(errno));
    } else if (text != NULL) {
        policy = load(fd, json, text, &reader);
    }
    if (fd >= 0) {
        close(fd);
    }
    free(text);
    return policy;
}

void spw_policy_destroy(struct spw_policy *policy)
{
    if (policy != NULL) {
        spw_policy_memory_free(policy->memory);
        free(policy);
    }
}
