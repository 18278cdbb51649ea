#include "cli/keep/key.h"

#include "common/hash.h"
#include "system/fd.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static uint64_t add_text(uint64_t hash, const char *text)
{
    return spw_hash_mix(hash, spw_hash_bytes(text, strlen(text)));
}

uint64_t spw_cli_keep_command(char *const *arguments, const char *folder)
{
    uint64_t hash = add_text(0, folder);

    for (; *arguments != NULL; arguments++) {
        hash = add_text(hash, *arguments);
    }
    return hash;
}

uint64_t spw_cli_keep_device(const char *card, const char *limit, const char *host_limit)
{
    uint64_t hash = add_text(0, card);

    hash = add_text(hash, limit != NULL ? limit : "");
    return add_text(hash, host_limit != NULL ? host_limit : "");
}

/* Hashes the content of a regular file. */
static bool hash_file(const char *path, uint64_t *ret_content)
{
    int fd = spw_fd_open_regular(path);
    struct stat status;
    void *content = MAP_FAILED;

    if (fd < 0) {
        return false;
    }
    if (fstat(fd, &status) == 0 && status.st_size > 0) {
        content = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    }
    close(fd);
    if (content == MAP_FAILED) {
        return false;
    }
    *ret_content = spw_hash_bytes(content, (size_t)status.st_size);
    munmap(content, (size_t)status.st_size);
    return true;
}

static bool is_script(const char *name)
{
    size_t length = strlen(name);

    return length > 3 && strcmp(name + length - 3, ".py") == 0;
}

bool spw_cli_keep_script(char *const *arguments, char ret_path[PATH_MAX], uint64_t *ret_content)
{
    const char *program = arguments[0];

    for (; *arguments != NULL; arguments++) {
        if (is_script(*arguments) && hash_file(*arguments, ret_content)) {
            return snprintf(ret_path, PATH_MAX, "%s", *arguments) < PATH_MAX;
        }
    }
    return strchr(program, '/') != NULL && hash_file(program, ret_content) &&
           snprintf(ret_path, PATH_MAX, "%s", program) < PATH_MAX;
}
