/* Nested lists and dictionaries, as JSON or as a pickle of protocol 2 with the opcodes that
 * PyTorch's viewer knows. No locking. */
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
    uint32_t memos; /* lists kept in the pickle */
};

/* Begin and end the file. */
void spw_cli_snapshot_begin(struct spw_cli_snapshot *snapshot);
void spw_cli_snapshot_end(struct spw_cli_snapshot *snapshot);

/* Open and close a list or a dictionary, which is the next value. */
void spw_cli_snapshot_open(struct spw_cli_snapshot *snapshot, bool dictionary);
void spw_cli_snapshot_close(struct spw_cli_snapshot *snapshot);

/* Writes the key of the next value, in a dictionary. */
void spw_cli_snapshot_key(struct spw_cli_snapshot *snapshot, const char *key);

/* Write the next value. A pair of numbers is a tuple in a pickle. */
void spw_cli_snapshot_number(struct spw_cli_snapshot *snapshot, uint64_t number);
void spw_cli_snapshot_text(struct spw_cli_snapshot *snapshot, const char *text);
void spw_cli_snapshot_boolean(struct spw_cli_snapshot *snapshot, bool value);
void spw_cli_snapshot_pair(struct spw_cli_snapshot *snapshot, uint64_t first, uint64_t second);

/* Closes a list like spw_cli_snapshot_close, and keeps it under the returned number. In JSON,
 * keeps nothing and returns 0. */
uint32_t spw_cli_snapshot_close_kept(struct spw_cli_snapshot *snapshot);

/* Writes a kept list again, as the next value. */
void spw_cli_snapshot_again(struct spw_cli_snapshot *snapshot, uint32_t kept);
