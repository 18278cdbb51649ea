/* The folder at the start of the process, paths that are relative to it, and variables of the
 * environment at the start of spillway.
 *
 * A program may change its folder. A relative path of the user (a file in a variable, this object
 * in LD_PRELOAD) is still relative to the folder at the start. The user did not choose later
 * folders, so no path here is ever relative to them.
 *
 * The folder is read with one system call when the code is loaded, or at an earlier first use. No
 * locking, no allocation. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

/* The folder, absolute; NULL if it is not known. */
const char *spw_start_folder(void);

/* Writes an absolute path as it is, and a relative one behind that folder. False, with "", if the
 * folder is not known or the path does not fit. */
bool spw_start_path(const char *path, char *ret_path, size_t capacity);

/* The path of the loaded object that contains `address`. False if it is not known. */
bool spw_start_object(const void *address, char ret_path[PATH_MAX]);

/* The folder of the object that this code is part of, written to `buffer`; NULL if it is not
 * known. */
const char *spw_start_own_folder(char buffer[PATH_MAX]);

/* Keeps the variables that a helper process gets (child.h): those for the driver and the simulated
 * GPU. Later calls do nothing. Calls must not overlap. */
void spw_start_keep_environment(void);

/* The variables that were kept, NULL-terminated; none before spw_start_keep_environment. */
char *const *spw_start_environment(void);
