#include "driver/host_verdict.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/options.h"
#include "system/cache.h"
#include "system/create.h"
#include "system/fd.h"
#include "system/room.h"
#include "system/start.h"

enum { LINE_BYTES = 128, FILE_BYTES = SPW_VERDICT_KEY + LINE_BYTES, STATUS_BYTES = 8192 };

/* ---- the key ---- */

/* Reads the beginning of a file as text, which is empty when the file cannot be read. */
static const char *read_text(const char *path, char *text, size_t capacity)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = fd < 0 ? -1 : read(fd, text, capacity - 1);

    if (fd >= 0) {
        close(fd);
    }
    text[length > 0 ? length : 0] = '\0';
    return text;
}

static const char *read_line(const char *path, char line[LINE_BYTES])
{
    (void)read_text(path, line, LINE_BYTES);
    line[strcspn(line, "\n")] = '\0';
    return line;
}

/* The value behind `name` in /proc/self/status; `name` begins with a newline. */
static const char *status_of(const char *status, const char *name, char line[LINE_BYTES])
{
    const char *found = strstr(status, name);

    (void)snprintf(line, LINE_BYTES, "%s",
                   found == NULL ? "" : found + strlen(name) + strspn(found + strlen(name), ":\t"));
    line[strcspn(line, "\n")] = '\0';
    return line;
}

void spw_driver_host_verdict_key(const char *device, int version, char ret_key[SPW_VERDICT_KEY])
{
    char boot[LINE_BYTES], module[LINE_BYTES], rights[LINE_BYTES], filter[LINE_BYTES];
    char nodes[LINE_BYTES];
    char SPW_ROOM *room = spw_room_take(STATUS_BYTES);
    const char *status = room == NULL ? "" : read_text("/proc/self/status", room, STATUS_BYTES);

    (void)snprintf(ret_key, SPW_VERDICT_KEY,
                   "spillway host 1 device=%s driver=%d/%s boot=%s rights=%s filter=%s nodes=%s",
                   device, version, read_line("/sys/module/nvidia/version", module),
                   read_line("/proc/sys/kernel/random/boot_id", boot),
                   status_of(status, "\nCapEff", rights), status_of(status, "\nSeccomp", filter),
                   status_of(status, "\nMems_allowed_list", nodes));
}

/* ---- the file ---- */

static uint64_t hash_of(const char *text)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);

    for (; *text != '\0'; text++) {
        hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
    }
    return hash;
}

/* The folder of verdicts; with `make`, creates it. False when there is none. */
static bool folder_of(bool simulated, bool make, char ret_folder[PATH_MAX])
{
    const char *run = spw_option_environment("SPILLWAY_RUN_DIR");

    if (!simulated && spw_cache_folder(make, ret_folder, PATH_MAX)) {
        return true;
    }
    return run != NULL && spw_start_path(run, ret_folder, PATH_MAX);
}

/* Two paths, which are too large for a stack. */
struct names {
    char path[PATH_MAX];
    char temporary[PATH_MAX];
};

static bool path_of(bool simulated, bool make, const char *key, char ret_path[PATH_MAX])
{
    char SPW_ROOM *folder = spw_room_take(PATH_MAX);

    return folder != NULL && folder_of(simulated, make, folder) &&
           snprintf(ret_path, PATH_MAX, "%s/host-%016" PRIx64, folder, hash_of(key)) < PATH_MAX;
}

/* Reads the file if it belongs to the user and no other user may write it. */
static bool read_own(const char *path, char text[FILE_BYTES])
{
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    ssize_t length = -1;

    if (fd < 0) {
        return false;
    }
    if (spw_fd_is_own(fd, S_IFREG)) {
        length = read(fd, text, FILE_BYTES - 1);
    }
    close(fd);
    text[length > 0 ? length : 0] = '\0';
    return length > 0;
}

bool spw_driver_host_verdict_read(bool simulated, const char *key, bool *ret_works,
                                  CUmemLocation *ret_place)
{
    struct names SPW_ROOM *names = spw_room_take(sizeof(*names));
    char text[FILE_BYTES];
    size_t length = strlen(key);
    int works, type, id, end = 0;

    if (names == NULL || !path_of(simulated, /* make */ false, key, names->path) ||
        !read_own(names->path, text) || strncmp(text, key, length) != 0 ||
        sscanf(text + length, "\nworks=%d type=%d id=%d\n%n", &works, &type, &id, &end) != 3 ||
        end == 0 || text[length + (size_t)end] != '\0' ||
        (type != CU_MEM_LOCATION_TYPE_HOST && type != CU_MEM_LOCATION_TYPE_HOST_NUMA) || id < 0) {
        return false;
    }
    *ret_works = works == 1;
    *ret_place = (CUmemLocation){.type = (CUmemLocationType)type, .id = id};
    return true;
}

void spw_driver_host_verdict_write(bool simulated, const char *key, bool works, CUmemLocation place)
{
    struct names SPW_ROOM *names = spw_room_take(sizeof(*names));
    char text[FILE_BYTES];
    int fd, length = snprintf(text, sizeof(text), "%s\nworks=%d type=%d id=%d\n", key, works,
                              (int)place.type, place.id);

    if (names == NULL || length < 0 || length >= (int)sizeof(text) ||
        !path_of(simulated, /* make */ true, key, names->path)) {
        return;
    }
    fd = spw_create_beside(names->path, 0600, names->temporary, sizeof(names->temporary));
    if (fd < 0) {
        return;
    }
    if (!spw_fd_write(fd, text, (size_t)length) || rename(names->temporary, names->path) != 0) {
        (void)unlink(names->temporary);
    }
    close(fd);
}
