/* Finds the policies that ship with spillway. `base` is the folder of the command or of the
 * preloaded object. The policies are in the folder "policies" there (build folder, bundle), or in
 * share/spillway of an installation. Only reads the file system; no locking. */
#pragma once

#include <limits.h>

enum { SPW_POLICY_FILE_NAME = 64 };

/* Returns the path of the shipped policy called `name`, which is written to `buffer`. Returns
 * `name` itself if there is no such policy. If `base` is NULL, there are no shipped policies. */
const char *spw_policy_find(const char *name, const char *base, char buffer[PATH_MAX]);

/* Returns the name of the shipped policy that is most similar to `name`, which is written to
 * `buffer`. Returns NULL if no name is similar. `name` must be neither a shipped policy nor a
 * file. */
const char *spw_policy_nearest(const char *name, const char *base,
                               char buffer[SPW_POLICY_FILE_NAME]);
