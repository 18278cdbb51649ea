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
    struct spw_record_header header; /* as in the file; its counts are not checked */
    uint64_t offset;                 /* of the next block in the file */
    uint32_t sequence;               /* of the next plain block */
    uint8_t *stored, *group;         /* buffers: a block as stored, a decompressed group */
    size_t group_at, group_bytes;    /* in `group`: the next plain block, and the end */
    const uint8_t *content;          /* of the latest plain block */
    size_t content_bytes;
    uint64_t time;                     /* when the latest plain block begins, in units */
    char problem[SPW_CLI_BLOCKS_TEXT]; /* why reading ended early; "": it did not */
};

/* True if the file begins as a recording does. */
bool spw_cli_blocks_recognise(const char *path);

/* Opens a recording, and takes over its descriptor, even on failure. False, with a sentence in
 * blocks->problem, when the file is no recording. */
bool spw_cli_blocks_open(struct spw_cli_blocks *blocks, int fd);
void spw_cli_blocks_close(struct spw_cli_blocks *blocks);

/* _next reads the next plain block. It is false at the end, and at the first block that is not
 * valid. _rewind returns to the first block. */
bool spw_cli_blocks_next(struct spw_cli_blocks *blocks);
void spw_cli_blocks_rewind(struct spw_cli_blocks *blocks);

/* Compresses the recording of a finished process. On failure, or if the file is no uncompressed
 * recording, the file stays as it is and the result is false. */
bool spw_cli_recording_compress(const char *path);
