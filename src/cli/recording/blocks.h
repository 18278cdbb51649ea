/* Reads the blocks of a recording, one after the other, in bounded memory. The file is not trusted.
 * One thread. */
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
    const uint8_t *content;          /* of the latest plain block */
    size_t content_bytes;
    uint64_t time;                     /* of its beginning, in units */
    char problem[SPW_CLI_BLOCKS_TEXT]; /* why reading ended early; "": it did not */
};

/* True if the file begins as a recording does. */
bool spw_cli_blocks_recognise(const char *path);

/* Opens a recording, and takes over its descriptor, even on failure. False, with a sentence in
 * blocks->problem, when the file is no recording. */
bool spw_cli_blocks_open(struct spw_cli_blocks *blocks, int fd);
void spw_cli_blocks_close(struct spw_cli_blocks *blocks);

/* Reads the next plain block; begins again with the first one. False at the end, and at the first
 * block that is not valid. */
bool spw_cli_blocks_next(struct spw_cli_blocks *blocks);
void spw_cli_blocks_rewind(struct spw_cli_blocks *blocks);

/* Replaces the recording of a process that has ended by a compressed one. False, and the file
 * stays, on any failure or if it is no plain recording. */
bool spw_cli_recording_compress(const char *path);
