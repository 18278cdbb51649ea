#include "policy/json.h"

#include "system/room.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#define LIBRARY "libcjson.so.1"

const cJSON *spw_policy_json_find(const cJSON *object, const char *key)
{
    const cJSON *member = object->child;

    while (member != NULL && strcmp(member->string, key) != 0) {
        member = member->next;
    }
    return member;
}

size_t spw_policy_json_count(const cJSON *group)
{
    size_t count = 0;

    for (const cJSON *item = group->child; item != NULL; item = item->next) {
        count++;
    }
    return count;
}

static void *open_in(const char *folder, const char *below)
{
    char SPW_ROOM *path = spw_room_take(PATH_MAX);

    if (path == NULL || snprintf(path, PATH_MAX, "%s/%s" LIBRARY, folder, below) >= PATH_MAX) {
        return NULL;
    }
    return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

bool spw_policy_json_open(const char *folder, struct spw_json *ret_json)
{
    struct spw_json json = {0};

    *ret_json = json;
    if (folder != NULL) {
        json.handle = open_in(folder, "");
        json.handle = json.handle != NULL ? json.handle : open_in(folder, "lib/");
    }
    if (json.handle == NULL) {
        json.handle = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    }
    if (json.handle == NULL) {
        return false;
    }
    *(void **)&json.parse = dlsym(json.handle, "cJSON_ParseWithLengthOpts");
    *(void **)&json.destroy = dlsym(json.handle, "cJSON_Delete");
    if (json.parse == NULL || json.destroy == NULL) {
        dlclose(json.handle);
        return false;
    }
    *ret_json = json;
    return true;
}

void spw_policy_json_close(struct spw_json *json)
{
    if (json->handle != NULL) {
        dlclose(json->handle);
    }
    *json = (struct spw_json){0};
}
