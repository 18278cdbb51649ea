#include "policy/find.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The command lies in bin, the object in lib or a folder of it. */
static const char *const folders[] = {"policies", "../share/spillway/policies",
                                      "../../share/spillway/policies"};

const size_t spw_policy_folder_count = sizeof(folders) / sizeof(folders[0]);

bool spw_policy_folder(size_t i, const char *base, char ret_path[PATH_MAX])
{
    return snprintf(ret_path, PATH_MAX, "%s/%s", base, folders[i]) < PATH_MAX;
}

const char *spw_policy_find(const char *name, const char *base, char buffer[PATH_MAX])
{
    char folder[PATH_MAX];

    if (base == NULL || strchr(name, '/') != NULL) {
        return name;
    }
    for (size_t i = 0; i < spw_policy_folder_count; i++) {
        if (spw_policy_folder(i, base, folder) &&
            snprintf(buffer, PATH_MAX, "%s/%s.json", folder, name) < PATH_MAX &&
            access(buffer, R_OK) == 0) {
            return buffer;
        }
    }
    return name;
}
