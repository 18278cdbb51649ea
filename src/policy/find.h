/* Where the policies are that ship with spillway. Only reads the file system; no locking. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

/* How many folders may hold them. */
extern const size_t spw_policy_folder_count;

/* The i-th of these folders, seen from the folder of the command or the preloaded object: beside it
 * in the build folder and in a bundle, then in an installation. False when the path is too long. */
bool spw_policy_folder(size_t i, const char *base, char ret_path[PATH_MAX]);

/* The path of the policy that `name` means: the shipped one of that name, written to `buffer`, else
 * the name itself. `base` is as above; NULL: nothing ships. */
const char *spw_policy_find(const char *name, const char *base, char buffer[PATH_MAX]);
