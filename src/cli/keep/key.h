/* Names the subject of a kept choice: a command in a folder, on a card. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

/* Returns the hash of a command with its arguments, and of the folder where it starts. Pure. */
uint64_t spw_cli_keep_command(char *const *arguments, const char *folder);

/* Returns the hash of a card, and of the options that limit its memory. Pure. */
uint64_t spw_cli_keep_device(const char *card, const char *limit, const char *host_limit);

/* Finds the script of a command: the first argument that is a file ending in .py, otherwise the
 * program, if it is given by a path. Writes its path as it is given, and the hash of its content.
 * Returns false if there is none, or if it cannot be read. */
bool spw_cli_keep_script(char *const *arguments, char ret_path[PATH_MAX], uint64_t *ret_content);
