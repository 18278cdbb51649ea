#include "cli/inspect/process.h"

#include "system/fd.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

/* Finds the shared memory of a process that this command did not start. The memory is a memfd among
 * the process's descriptors. If there are several, takes the last one, because a child inherits the
 * descriptors of its parent. */
static bool find_descriptor(int pid, const char *name, char ret_path[SPW_CLI_PROCESS_PATH])
{
    char folder[64], link[SPW_CLI_PROCESS_PATH], target[256];
    const struct dirent *entry;
    bool found = false;
    DIR *open;

    snprintf(folder, sizeof(folder), "/proc/%d/fd", pid);
    open = opendir(folder);
    while (open != NULL && (entry = readdir(open)) != NULL) {
        ssize_t length;

        snprintf(link, sizeof(link), "%s/%s", folder, entry->d_name);
        length = readlink(link, target, sizeof(target) - 1);
        target[length > 0 ? length : 0] = '\0';
        if (begins(target, "/memfd:") && begins(target + strlen("/memfd:"), name)) {
            snprintf(ret_path, SPW_CLI_PROCESS_PATH, "%s", link);
            found = true;
        }
    }
    if (open != NULL) {
        closedir(open);
    }
    return found;
}

/* Returns true if a mapped file holds the process's statistics in a run directory. Such a file is
 * named PID or PID.NUMBER, and is in a directory named spillway-XXXXXX. PID is the pid in the
 * process's own pid namespace. */
static bool is_statistics(const char *path, int pid)
{
    const char *name = strrchr(path, '/');
    long number;
    char *end;

    if (name == NULL || strstr(path, "/spillway-") == NULL) {
        return false;
    }
    number = strtol(name + 1, &end, 10);
    if (*end != '\0' && (*end != '.' || strspn(end + 1, "0123456789") != strlen(end + 1))) {
        return false;
    }
    return number > 0 && number == spw_cli_process_own_pid(pid);
}

/* Writes a path that this process can open. The path differs if the other process runs in a
 * container and has another root. */
static void add_root(int pid, const char *path, char ret_path[SPW_CLI_PROCESS_PATH])
{
    snprintf(ret_path, SPW_CLI_PROCESS_PATH, "%s", path);
    if (access(path, R_OK) != 0) {
        snprintf(ret_path, SPW_CLI_PROCESS_PATH, "/proc/%d/root%s", pid, path);
    }
}

static enum spw_cli_found find_mapping(int pid, char ret_path[SPW_CLI_PROCESS_PATH])
{
    enum spw_cli_found result = SPW_CLI_FOUND_NOTHING;
    char name[64], line[PATH_MAX + 128];
    FILE *maps;

    snprintf(name, sizeof(name), "/proc/%d/maps", pid);
    maps = fopen(name, "re");
    if (maps == NULL) {
        return errno == ENOENT || errno == ESRCH ? SPW_CLI_FOUND_NO_PROCESS : SPW_CLI_FOUND_DENIED;
    }
    while (fgets(line, sizeof(line), maps) != NULL) {
        char *path = strchr(line, '/');

        line[strcspn(line, "\n")] = '\0';
        if (path != NULL && is_statistics(path, pid)) {
            add_root(pid, path, ret_path);
            result = SPW_CLI_FOUND;
        }
    }
    if (ferror(maps) != 0) {
        result = SPW_CLI_FOUND_DENIED;
    }
    fclose(maps);
    return result;
}

enum spw_cli_found spw_cli_process_find(int pid, char ret_stats[SPW_CLI_PROCESS_PATH],
                                        char ret_sites[SPW_CLI_PROCESS_PATH])
{
    enum spw_cli_found result = find_mapping(pid, ret_stats);

    ret_sites[0] = '\0';
    if (result == SPW_CLI_FOUND_NOTHING && find_descriptor(pid, "spillway-stats", ret_stats)) {
        result = SPW_CLI_FOUND;
    }
    if (result == SPW_CLI_FOUND) {
        (void)find_descriptor(pid, "spillway-sites", ret_sites);
    }
    return result;
}

bool spw_cli_process_maps(int pid, int file)
{
    char name[64], line[PATH_MAX + 128];
    bool any = false, found = false;
    struct stat status;
    FILE *maps;

    snprintf(name, sizeof(name), "/proc/%d/maps", pid);
    maps = fstat(file, &status) == 0 ? fopen(name, "re") : NULL;
    while (maps != NULL && !found && fgets(line, sizeof(line), maps) != NULL) {
        unsigned long inode = 0;

        /* Device numbers are not compared, because the device number in this list can differ from
         * the one that fstat returns. */
        any = true;
        found = sscanf(line, "%*s %*s %*s %*s %lu", &inode) == 1 && inode == status.st_ino &&
                strstr(line, "spillway-") != NULL;
    }
    if (maps != NULL) {
        fclose(maps);
    }
    return found || !any;
}

bool spw_cli_process_parse(const char *text, int *ret_pid)
{
    char *rest;
    long pid = strtol(text, &rest, 10);

    *ret_pid = (int)pid;
    return rest != text && *rest == '\0' && pid > 0 && pid <= INT_MAX;
}

/* ---- ownership ---- */

static bool read_status(int pid, const char *name, char *ret_line, size_t capacity)
{
    char path[64];
    bool found = false;
    FILE *status;

    snprintf(path, sizeof(path), "/proc/%d/status", pid);
    status = fopen(path, "re");
    while (status != NULL && !found && fgets(ret_line, (int)capacity, status) != NULL) {
        found = begins(ret_line, name);
    }
    if (status != NULL) {
        fclose(status);
    }
    if (found) {
        memmove(ret_line, ret_line + strlen(name), strlen(ret_line) - strlen(name) + 1);
    }
    return found;
}

int spw_cli_process_own_pid(int pid)
{
    char line[512];
    const char *last;

    if (!read_status(pid, "NSpid:", line, sizeof(line))) {
        return read_status(pid, "Pid:", line, sizeof(line)) ? pid : 0;
    }
    last = strrchr(line, '\t');
    return last != NULL ? (int)strtol(last, NULL, 10) : pid;
}

/* Returns true if `user` is the real, effective, saved or file system user of the process. */
static bool is_user(int pid, uid_t user)
{
    char line[256];
    const char *at = line;

    if (!read_status(pid, "Uid:", line, sizeof(line))) {
        return false;
    }
    for (int i = 0; i < 4; i++) {
        char *end;
        unsigned long number = strtoul(at, &end, 10);

        if (end != at && number == user) {
            return true;
        }
        at = end;
    }
    return false;
}

int spw_cli_process_open(int pid, const char *path)
{
    int fd = spw_fd_open_regular(path);
    struct stat status;

    if (fd < 0) {
        return -1;
    }
    if (fstat(fd, &status) == 0 && (status.st_uid == 0 || is_user(pid, status.st_uid))) {
        return fd;
    }
    close(fd);
    errno = EPERM;
    return -1;
}

/* ---- descendants ---- */

static int parent_of(int pid)
{
    char name[64], text[512];
    int parent = 0;
    const char *end;
    FILE *stat;

    snprintf(name, sizeof(name), "/proc/%d/stat", pid);
    stat = fopen(name, "re");
    if (stat == NULL) {
        return 0;
    }
    /* The program's name, in parentheses, may contain any character. */
    if (fgets(text, sizeof(text), stat) != NULL && (end = strrchr(text, ')')) != NULL) {
        (void)sscanf(end + 1, " %*c %d", &parent);
    }
    fclose(stat);
    return parent;
}

static bool is_descendant(int pid, int ancestor)
{
    enum { DEEPEST = 64 };

    for (int i = 0; i < DEEPEST && pid > 1; i++) {
        pid = parent_of(pid);
        if (pid == ancestor) {
            return true;
        }
    }
    return false;
}

void spw_cli_process_descendants(int pid, char *ret_pids, size_t capacity)
{
    char stats[SPW_CLI_PROCESS_PATH], sites[SPW_CLI_PROCESS_PATH];
    DIR *processes = opendir("/proc");
    const struct dirent *entry;
    size_t used = 0;

    ret_pids[0] = '\0';
    while (processes != NULL && (entry = readdir(processes)) != NULL && used < capacity) {
        int other = (int)strtol(entry->d_name, NULL, 10);

        if (other > 0 && is_descendant(other, pid) &&
            spw_cli_process_find(other, stats, sites) == SPW_CLI_FOUND) {
            int length =
                snprintf(ret_pids + used, capacity - used, "%s%d", used > 0 ? ", " : "", other);

            used += length > 0 ? (size_t)length : 0;
        }
    }
    if (processes != NULL) {
        closedir(processes);
    }
}
