/* Finds the policies that ship with spillway, relative to `base`, the folder of the command or of
 * the preloaded object: beside it in the build folder and in a bundle, else in an installation.
 * Only reads the file system; no locking. */
#pragma once

#include <limits.h>

enum { SPW_POLICY_FILE_NAME = 64 };

/* Returns the path of the shipped policy called `name`, written to `buffer`, or else `name` itself.
 * With `base` NULL there are no shipped policies. */
const char *spw_policy_find(const char *name, const char *base, char buffer[PATH_MAX]);

/* For a `name` that is neither a shipped policy nor a file, as the caller knows: returns the
 * nearest name of a shipped policy, written to `buffer`, or NULL when none is near. */
const char *spw_policy_nearest(const char *name, const char *base,
                               char buffer[SPW_POLICY_FILE_NAME]);
