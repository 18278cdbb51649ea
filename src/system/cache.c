#include "system/cache.h"

#include "common/options.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static const char *absolute(const char *name)
{
    const char *path = spw_option_environment(name);

    return path != NULL && *path == '/' ? path : NULL;
}

static bool make_folder(const char *path)
{
    return mkdir(path, 0700) == 0 || errno == EEXIST;
}

bool spw_cache_folder(bool make, char *ret_folder, size_t capacity)
{
    const char *cache = absolute("XDG_CACHE_HOME"), *home = absolute("HOME");
    int length;

    if (cache == NULL && home == NULL) {
        return false;
    }
    length = cache != NULL ? snprintf(ret_folder, capacity, "%s", cache)
                           : snprintf(ret_folder, capacity, "%s/.cache", home);
    if (length < 0 || (size_t)length + sizeof("/spillway") > capacity) {
        return false;
    }
    if (make && !make_folder(ret_folder)) {
        return false;
    }
    memcpy(ret_folder + length, "/spillway", sizeof("/spillway"));
    return !make || make_folder(ret_folder);
}
