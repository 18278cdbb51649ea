/* The files of kept choices: FOLDER/COMMAND-DEVICE.json, with the hashes of key.h. The folder is
 * "fit" in the user's cache folder. It is used only if both folders and the file belong to the
 * user, are no links, and other users may not write them. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cjson/cJSON.h>

#include "cli/keep/state.h"

enum { SPW_CLI_KEEP_WHY = 512 };

/* Writes the path of the folder. With `make`, creates it. If there is none that may be used, writes
 * the reason to `why` and returns false. */
bool spw_cli_keep_folder(bool make, char ret_folder[PATH_MAX], char why[SPW_CLI_KEEP_WHY]);

/* A kept choice. */
struct spw_cli_kept {
    char path[PATH_MAX];
    struct spw_cli_keep_state state;
    char chosen[1600]; /* the choice and its cost, in words */
    bool has_rules;    /* otherwise only the state counts */
};

/* Reads a kept choice. `path` names a file in the folder. Returns false if there is none, or if the
 * file may not be used; `why` is then the reason, "" if there is no file. */
bool spw_cli_kept_read(const char *path, struct spw_cli_kept *ret_kept, char why[SPW_CLI_KEEP_WHY]);

/* The subject of a choice, for the comment of its file. */
struct spw_cli_kept_for {
    char *const *arguments;
    const char *folder, *card, *limit; /* limit: NULL: none */
    const char *script;                /* "": not known */
};

/* Writes a kept choice to kept->path, with the rules of `policy` (NULL: none), which it deletes.
 * Returns false, with a reason, if that is not possible; there is then no file. */
bool spw_cli_kept_write(const struct spw_cli_kept *kept, const struct spw_cli_kept_for *what,
                        cJSON *policy, char why[SPW_CLI_KEEP_WHY]);

/* Calls `visit` for each file that is kept for a command, by its hash; with 0, for all commands.
 * These are choices (.json), and leftovers of killed launchers. */
void spw_cli_kept_each(const char *folder, uint64_t command,
                       void (*visit)(const char *path, void *context), void *context);
