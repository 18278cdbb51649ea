/* Finds the policies that ship with spillway. `base` is the folder of the command or of the
 * preloaded object. The policies are in its folder "policies" (build folder, bundle), or in
 * share/spillway of an installation. Only reads the file system; no locking. */
#pragma once

#include <limits.h>

enum { SPW_POLICY_FILE_NAME = 64 };

/* Returns the path of the shipped policy called `name`, written to `buffer`, or `name` itself if
 * there is none. With `base` NULL there are no shipped policies. */
const char *spw_policy_find(const char *name, const char *base, char buffer[PATH_MAX]);

/* Returns the name of a shipped policy that is nearest to `name`, written to `buffer`; NULL when
 * none is near. The caller knows that `name` is neither a shipped policy nor a file. */
const char *spw_policy_nearest(const char *name, const char *base,
                               char buffer[SPW_POLICY_FILE_NAME]);
