#include "policy/find.h"

#include "common/nearest.h"
#include "system/room.h"

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define SUFFIX ".json"

enum { MOST_SHIPPED = 32 };

/* An installation has the command in bin, and the object in lib or a folder of lib. */
static const char *const folders[] = {"policies", "../share/spillway/policies",
                                      "../../share/spillway/policies"};

enum { FOLDERS = sizeof(folders) / sizeof(folders[0]) };

static bool folder_of(size_t i, const char *base, char ret_path[PATH_MAX])
{
    return snprintf(ret_path, PATH_MAX, "%s/%s", base, folders[i]) < PATH_MAX;
}

const char *spw_policy_find(const char *name, const char *base, char buffer[PATH_MAX])
{
    char SPW_ROOM *folder = spw_room_take(PATH_MAX);

    if (folder == NULL || base == NULL || strchr(name, '/') != NULL) {
        return name;
    }
    for (size_t i = 0; i < FOLDERS; i++) {
        if (folder_of(i, base, folder) &&
            snprintf(buffer, PATH_MAX, "%s/%s" SUFFIX, folder, name) < PATH_MAX &&
            access(buffer, R_OK) == 0) {
            return buffer;
        }
    }
    return name;
}

/* Adds the names of the policies in a folder to the list, and returns its new length. The schema is
 * no policy. */
static size_t list_folder(const char *folder, char names[][SPW_POLICY_FILE_NAME], size_t count)
{
    DIR *listing = opendir(folder);
    struct dirent *entry;

    while (listing != NULL && count < MOST_SHIPPED && (entry = readdir(listing)) != NULL) {
        size_t length = strcspn(entry->d_name, ".");

        if (length > 0 && length < SPW_POLICY_FILE_NAME &&
            strcmp(entry->d_name + length, SUFFIX) == 0) {
            memcpy(names[count], entry->d_name, length);
            names[count++][length] = '\0';
        }
    }
    if (listing != NULL) {
        closedir(listing);
    }
    return count;
}

/* Too large for a stack. */
struct listing {
    char names[MOST_SHIPPED][SPW_POLICY_FILE_NAME], folder[PATH_MAX];
};

const char *spw_policy_nearest(const char *name, const char *base,
                               char buffer[SPW_POLICY_FILE_NAME])
{
    struct listing SPW_ROOM *found = spw_room_take(sizeof(*found));
    const char *candidates[MOST_SHIPPED], *nearest;
    size_t count = 0;

    if (found == NULL || base == NULL || strchr(name, '/') != NULL) {
        return NULL;
    }
    for (size_t i = 0; i < FOLDERS; i++) {
        if (folder_of(i, base, found->folder)) {
            count = list_folder(found->folder, found->names, count);
        }
    }
    for (size_t i = 0; i < count; i++) {
        candidates[i] = found->names[i];
    }
    nearest = spw_nearest(name, 0, candidates, count);
    if (nearest == NULL) {
        return NULL;
    }
    memcpy(buffer, nearest, strlen(nearest) + 1);
    return buffer;
}
