/* Writes nested lists and dictionaries, either as JSON or as a pickle. The pickle has protocol 2
 * and uses only opcodes that PyTorch's viewer knows. No locking. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "system/write.h"

struct spw_cli_snapshot {
    struct spw_writer *out;
    bool pickle;
    int depth;
    struct {
        bool dictionary;
        bool any; /* has an element */
    } levels[16];
    uint32_t memos; /* number of lists kept in the pickle */
};

/* Begin and end the file. */
void spw_cli_snapshot_begin(struct spw_cli_snapshot *snapshot);
void spw_cli_snapshot_end(struct spw_cli_snapshot *snapshot);

/* _open begins a list or a dictionary as the next value. _close ends it. */
void spw_cli_snapshot_open(struct spw_cli_snapshot *snapshot, bool dictionary);
void spw_cli_snapshot_close(struct spw_cli_snapshot *snapshot);

/* Writes the key of the next value in a dictionary. */
void spw_cli_snapshot_key(struct spw_cli_snapshot *snapshot, const char *key);

/* Write the next value. In a pickle, a pair of numbers is a tuple. */
void spw_cli_snapshot_number(struct spw_cli_snapshot *snapshot, uint64_t number);
void spw_cli_snapshot_text(struct spw_cli_snapshot *snapshot, const char *text);
void spw_cli_snapshot_boolean(struct spw_cli_snapshot *snapshot, bool value);
void spw_cli_snapshot_pair(struct spw_cli_snapshot *snapshot, uint64_t first, uint64_t second);

/* Closes a list as spw_cli_snapshot_close does, and keeps the list under the returned number. For
 * JSON, keeps nothing and returns 0. */
uint32_t spw_cli_snapshot_close_kept(struct spw_cli_snapshot *snapshot);

/* Writes a kept list again as the next value. Only for a pickle. */
void spw_cli_snapshot_again(struct spw_cli_snapshot *snapshot, uint32_t kept);
