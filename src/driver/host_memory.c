#include "driver/host_memory.h"

#include "common/options.h"
#include "driver/host_place.h"
#include "system/room.h"
#include "system/uncancelled.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    PATH_BYTES = 1024,
    FILE_PATH_BYTES = PATH_BYTES + 64, /* a folder's path and a file name */
    READ_BYTES = 8191,
    TEXT_BYTES = READ_BYTES + 1
};

static const uint64_t most_kept_free = UINT64_C(1) << 30;

/* Memory for reading files; too large for a stack. */
struct scratch {
    char path[FILE_PATH_BYTES], text[TEXT_BYTES]; /* path and content of the file being read */
    char folder[PATH_BYTES];
    char groups[TEXT_BYTES];
};

/* Reads the beginning of a file as text; "" if the file cannot be opened. */
static void read_text(const char *path, char text[TEXT_BYTES])
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    size_t used = 0;
    ssize_t count;

    while ((count = read(fd, text + used, READ_BYTES - used)) > 0) {
        used += (size_t)count;
    }
    close(fd);
    text[used] = '\0';
}

/* Parses the number that follows `name` at the beginning of a line. False when no line begins with
 * `name`. */
static bool number_of(const char *text, const char *name, uint64_t *ret_number)
{
    size_t length = strlen(name);

    for (const char *line = text; line != NULL && *line != '\0';) {
        if (strncmp(line, name, length) == 0) {
            line += length;
            line += strspn(line, ": \t");
            *ret_number = strtoull(line, NULL, 10);
            return true;
        }
        line = strchr(line, '\n');
        line = line == NULL ? NULL : line + 1;
    }
    return false;
}

static void read_machine(const char *root, struct scratch *scratch, struct spw_host_memory *memory)
{
    uint64_t kib;

    snprintf(scratch->path, sizeof(scratch->path), "%s/proc/meminfo", root);
    read_text(scratch->path, scratch->text);
    if (number_of(scratch->text, "MemTotal", &kib)) {
        memory->total = kib * 1024;
    }
    if (number_of(scratch->text, "MemAvailable", &kib)) {
        memory->available = kib * 1024;
    }
}

/* The file names of the two versions of control groups. */
struct group_kind {
    const char *folder;
    const char *limit, *usage;
    const char *reclaimable;        /* key in memory.stat of the file pages that can be reclaimed */
    const char *anonymous, *shared; /* keys of memory that cannot: of processes, and in tmpfs */
};

/* Reads a file of the group's folder. */
static const char *read_file(struct scratch *scratch, const char *name)
{
    snprintf(scratch->path, sizeof(scratch->path), "%s/%s", scratch->folder, name);
    read_text(scratch->path, scratch->text);
    return scratch->text;
}

static bool read_number(struct scratch *scratch, const char *name, uint64_t *ret_number)
{
    const char *text = read_file(scratch, name);

    if (text[0] < '0' || text[0] > '9') {
        return false; /* "max": no limit */
    }
    *ret_number = strtoull(text, NULL, 10);
    return true;
}

/* left - right, or 0 if the difference is negative. */
static uint64_t subtract(uint64_t left, uint64_t right)
{
    return left > right ? left - right : 0;
}

/* Reads the group in `folder`, and keeps its figures if it has the least memory left so far. */
static void read_group(struct scratch *scratch, const struct group_kind *kind,
                       struct spw_host_memory *memory)
{
    uint64_t limit, usage, reclaimable = 0, anonymous = 0, shared = 0, leaves, own_leaves;
    const char *stat;

    if (!read_number(scratch, kind->limit, &limit) || !read_number(scratch, kind->usage, &usage) ||
        (memory->total != 0 && limit >= memory->total)) {
        return; /* no limit: version 1 writes it as a huge number */
    }
    stat = read_file(scratch, "memory.stat");
    (void)number_of(stat, kind->reclaimable, &reclaimable);
    (void)number_of(stat, kind->anonymous, &anonymous);
    (void)number_of(stat, kind->shared, &shared);
    leaves = subtract(limit, subtract(usage, reclaimable));
    own_leaves = subtract(limit, anonymous + shared);
    if (!memory->limited || own_leaves < memory->group_own_leaves) {
        memory->group_own_leaves = own_leaves;
    }
    if (!memory->limited || leaves < memory->group_leaves) {
        memory->limited = true;
        memory->group_limit = limit;
        memory->group_leaves = leaves;
    }
}

/* Reads a group and its ancestors, because each may set a limit. In a container the path may be the
 * host's path of the group and not exist here; the root is always read. */
static void read_groups(const char *root, const struct group_kind *kind, const char *group,
                        struct scratch *scratch, struct spw_host_memory *memory)
{
    char *folder = scratch->folder;
    size_t base = strlen(root) + strlen(kind->folder);
    int length = snprintf(folder, PATH_BYTES, "%s%s%s", root, kind->folder, group);

    if (length >= PATH_BYTES) {
        return;
    }
    for (;;) {
        char *slash;

        read_group(scratch, kind, memory);
        slash = strrchr(folder + base, '/');
        if (slash == NULL) {
            return;
        }
        *slash = '\0';
    }
}

void spw_driver_host_memory_below(const char *root, struct spw_host_memory *ret_memory)
{
    SPW_UNCANCELLED;
    static const struct group_kind unified = {"/sys/fs/cgroup", "memory.max", "memory.current",
                                              "inactive_file",  "anon",       "shmem"};
    static const struct group_kind separate = {"/sys/fs/cgroup/memory",
                                               "memory.limit_in_bytes",
                                               "memory.usage_in_bytes",
                                               "total_inactive_file",
                                               "total_rss",
                                               "total_shmem"};
    struct scratch SPW_ROOM *scratch = spw_room_take(sizeof(*scratch));
    char *rest = NULL;

    memset(ret_memory, 0, sizeof(*ret_memory));
    if (scratch == NULL) {
        return;
    }
    read_machine(root, scratch, ret_memory);
    snprintf(scratch->path, sizeof(scratch->path), "%s/proc/self/cgroup", root);
    read_text(scratch->path, scratch->groups);
    /* Lines are NUMBER:CONTROLLERS:PATH. In version 2, CONTROLLERS is empty. */
    for (char *line = strtok_r(scratch->groups, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        char *controllers = strchr(line, ':');
        char *group = controllers == NULL ? NULL : strchr(controllers + 1, ':');

        if (group == NULL) {
            continue;
        }
        *group++ = '\0';
        if (controllers[1] == '\0') {
            read_groups(root, &unified, group, scratch, ret_memory);
        } else if (strstr(controllers, "memory") != NULL) {
            read_groups(root, &separate, group, scratch, ret_memory);
        }
    }
}

uint64_t spw_driver_host_memory_share(const struct spw_host_memory *memory)
{
    uint64_t left = memory->available;

    if (memory->limited && memory->group_leaves < left) {
        left = memory->group_leaves;
    }
    return left / 2;
}

static uint64_t above_floor(uint64_t available, uint64_t total)
{
    uint64_t floor = total / 8 < most_kept_free ? total / 8 : most_kept_free;

    return subtract(available, floor);
}

enum spw_host_bound spw_driver_host_memory_bound(const struct spw_host_memory *memory)
{
    return memory->limited && memory->group_leaves < memory->available ? SPW_HOST_BOUND_GROUP
                                                                       : SPW_HOST_BOUND_MACHINE;
}

struct spw_host_limit spw_driver_host_memory_room(const struct spw_host_memory *memory)
{
    struct spw_host_limit room = {.bytes = UINT64_MAX, .bound = SPW_HOST_BOUND_MACHINE};
    struct spw_host_limit group = {.bytes = UINT64_MAX, .bound = SPW_HOST_BOUND_GROUP};

    if (memory->total != 0) {
        room.bytes = above_floor(memory->available, memory->total);
    }
    if (memory->limited) {
        group.bytes = above_floor(memory->group_leaves, memory->group_limit);
    }
    return spw_host_limit_least(room, group);
}

uint64_t spw_driver_host_memory_one(const struct spw_host_memory *memory, uint64_t held,
                                    uint64_t reserve)
{
    uint64_t room = memory->total != 0 ? subtract(memory->available, reserve) : UINT64_MAX;
    uint64_t group, floor;

    if (!memory->limited) {
        return room;
    }
    group = subtract(memory->group_own_leaves, held);
    group = memory->group_leaves < group ? memory->group_leaves : group;
    floor = memory->group_limit / 8 < reserve ? memory->group_limit / 8 : reserve;
    group = subtract(group, floor);
    return group < room ? group : room;
}

int spw_driver_host_memory_gpus(const char *root)
{
    char path[PATH_BYTES];
    const struct dirent *entry;
    DIR *listing;
    int count = 0;

    snprintf(path, sizeof(path), "%s/proc/driver/nvidia/gpus", root);
    listing = opendir(path);
    while (listing != NULL && (entry = readdir(listing)) != NULL) {
        count += entry->d_name[0] != '.';
    }
    if (listing != NULL) {
        closedir(listing);
    }
    return count;
}

/* ---- the machine of the devices ---- */

void spw_driver_host_memory(bool simulated, struct spw_host_memory *ret_memory)
{
    const char *root = spw_driver_host_root(simulated);
    struct spw_option_value option;
    uint64_t bytes;

    spw_driver_host_memory_below(root != NULL ? root : "", ret_memory);
    if (root == NULL) {
        option = spw_option_get(SPW_OPT_SPILLWAY_SIM_HOST_MEMORY, NULL, 0);
        bytes = spw_option_bytes(&option, ret_memory->total);
        *ret_memory = (struct spw_host_memory){.total = bytes, .available = bytes};
    }
}

uint64_t spw_driver_host_gpus(bool simulated)
{
    const char *root = spw_driver_host_root(simulated);

    return root == NULL ? spw_option_get(SPW_OPT_SPILLWAY_SIM_DEVICES, NULL, 0).bytes
                        : (uint64_t)spw_driver_host_memory_gpus(root);
}
