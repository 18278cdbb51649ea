/* Paths as text. Pure. */
#pragma once

#include <string.h>

/* Returns the part of a path behind its last slash; the whole path if it has no slash. */
static inline const char *spw_path_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash != NULL ? slash + 1 : path;
}
