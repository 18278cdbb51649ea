/* The folder in which the process started, and what was named in relation to it.
 *
 * A program may change its folder. What the user named by a relative path (a file in a variable,
 * this object in LD_PRELOAD) is still meant as it was at the start, and what lies in the folder of
 * later is nobody's choice. So nothing here is ever relative to that one.
 *
 * The folder is noted when the code is loaded, or at the first question before that: one system
 * call. No locking, no allocation. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

/* The folder, absolute; NULL if it is not known. */
const char *spw_start_folder(void);

/* Writes an absolute path as it is, and a relative one behind the folder. False, with "", if that
 * is not known or the path does not fit. */
bool spw_start_path(const char *path, char *ret_path, size_t capacity);

/* The path of the loaded object that contains `address`. False if it is not known. */
bool spw_start_object(const void *address, char ret_path[PATH_MAX]);

/* The folder of the object that this code is part of, written to `buffer`; NULL if it is not
 * known. */
const char *spw_start_own_folder(char buffer[PATH_MAX]);
