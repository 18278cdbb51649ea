/* Paths as text. Pure. */
#pragma once

#include <string.h>

/* What stands behind the last slash of a path; all of it without one. */
static inline const char *spw_path_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash != NULL ? slash + 1 : path;
}
