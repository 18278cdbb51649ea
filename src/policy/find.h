/* Where the policies are that ship with spillway: seen from `base`, the folder of the command or
 * the preloaded object, beside it in the build folder and in a bundle, then in an installation.
 * Only reads the file system; no locking. */
#pragma once

#include <limits.h>

enum { SPW_POLICY_FILE_NAME = 64 };

/* The path of the policy that `name` means: the shipped one of that name, written to `buffer`, else
 * the name itself. `base` NULL: nothing ships. */
const char *spw_policy_find(const char *name, const char *base, char buffer[PATH_MAX]);

/* The shipped policy that was meant by `name`, which is neither one nor a file; NULL: none is near
 * enough. Written to `buffer`. `base` as above. */
const char *spw_policy_nearest(const char *name, const char *base,
                               char buffer[SPW_POLICY_FILE_NAME]);
