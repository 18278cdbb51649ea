#include "cli/launch/leftovers.h"

#include "cli/launch/members.h"
#include "system/create.h"
#include "system/fd.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define NOTE ".launcher"

enum { PATH = PATH_MAX + 64 };

/* Locks the file before the file gets its final name. Otherwise a launcher could mistake a new
 * folder for an old one. */
int spw_cli_leftovers_claim(const char *folder)
{
    char note[PATH], unlocked[PATH + 8];
    int fd;

    snprintf(note, sizeof(note), "%s/" NOTE, folder);
    snprintf(unlocked, sizeof(unlocked), "%s.new", note);
    fd = spw_create_open(unlocked, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
    if (fd < 0) {
        return -1;
    }
    if (flock(fd, LOCK_EX | LOCK_NB) != 0 || rename(unlocked, note) != 0) {
        (void)unlink(unlocked);
        close(fd);
        return -1;
    }
    return fd;
}

void spw_cli_leftovers_release(const char *folder, int claim)
{
    char note[PATH];

    if (claim >= 0) {
        snprintf(note, sizeof(note), "%s/" NOTE, folder);
        (void)unlink(note);
        close(claim);
    }
}

/* Removes the files of the folder `fd`. The locked file is removed last. If this process is killed
 * earlier, the next launcher removes the rest. */
static void empty(int fd)
{
    DIR *folder = fdopendir(dup(fd));
    struct dirent *entry;

    while (folder != NULL && (entry = readdir(folder)) != NULL) {
        if (strcmp(entry->d_name, NOTE) != 0) {
            (void)unlinkat(fd, entry->d_name, 0);
        }
    }
    if (folder != NULL) {
        closedir(folder);
    }
    (void)unlinkat(fd, NOTE, 0);
}

/* Removes the folder if it is a leftover. If two launchers try this at once, only one gets the
 * lock. */
static void remove_if_left(int in, const char *parent, const char *name)
{
    int fd = openat(in, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    int note = -1;
    char path[PATH];

    if (fd >= 0 && spw_fd_is_own(fd, S_IFDIR)) {
        note = openat(fd, NOTE, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    }
    snprintf(path, sizeof(path), "%s/%s", parent, name);
    if (note >= 0 && flock(note, LOCK_EX | LOCK_NB) == 0 && !spw_cli_members_live(path)) {
        empty(fd);
        (void)unlinkat(in, name, AT_REMOVEDIR);
    }
    if (note >= 0) {
        close(note);
    }
    if (fd >= 0) {
        close(fd);
    }
}

void spw_cli_leftovers_remove(const char *parent)
{
    DIR *folder = opendir(parent);
    struct dirent *entry;

    while (folder != NULL && (entry = readdir(folder)) != NULL) {
        if (strlen(entry->d_name) == strlen(SPW_CLI_RUN_FOLDER) &&
            strncmp(entry->d_name, SPW_CLI_RUN_FOLDER, strcspn(SPW_CLI_RUN_FOLDER, "X")) == 0) {
            remove_if_left(dirfd(folder), parent, entry->d_name);
        }
    }
    if (folder != NULL) {
        closedir(folder);
    }
}
