/* The blocks of a recording, read one after the other in bounded memory. Nothing in the file is
 * trusted. One thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "record/format.h"

enum { SPW_CLI_BLOCKS_TEXT = 160 };

struct spw_cli_blocks {
    int fd;
    uint64_t file_bytes;
    struct spw_record_header header; /* as in the file; counts are not checked */
    uint64_t offset;                 /* of the next block in the file */
    uint32_t sequence;               /* of the next plain block */
    uint8_t *stored, *group;         /* buffers: a block as stored, and decompressed */
    size_t group_at, group_bytes;    /* the next plain block of the group, and its end */
    const uint8_t *content;          /* of the plain block that was read last */
    size_t content_bytes;
    uint64_t time;                     /* of its beginning, in units */
    char problem[SPW_CLI_BLOCKS_TEXT]; /* why reading ended before the end; "": it did not */
};

/* True if the file begins as a recording does. */
bool spw_cli_blocks_recognise(const char *path);

/* Opens a recording by a descriptor, which it takes, also when it fails. False, with a sentence in
 * blocks->problem, when it is none. */
bool spw_cli_blocks_open(struct spw_cli_blocks *blocks, int fd);
void spw_cli_blocks_close(struct spw_cli_blocks *blocks);

/* Reads the next plain block. False at the end, and at the first block that is not valid. */
bool spw_cli_blocks_next(struct spw_cli_blocks *blocks);

/* Begins anew. */
void spw_cli_blocks_rewind(struct spw_cli_blocks *blocks);
