/* Reads the blocks of a recording one by one, in bounded memory. The file is not trusted. One
 * thread. */
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
    uint8_t *stored, *group; /* buffers: `stored` for a block as it is in the file, `group` for a
                              * decompressed group */
    size_t group_at, group_bytes; /* offsets in `group`: of the next plain block, and of the end */
    const uint8_t *content;       /* of the latest plain block */
    size_t content_bytes;
    uint64_t time;                     /* start time of the latest plain block, in units */
    char problem[SPW_CLI_BLOCKS_TEXT]; /* why reading stopped early; "": it did not */
};

/* Returns true if the file starts with the header of a recording. */
bool spw_cli_blocks_recognise(const char *path);

/* Opens a recording. Takes ownership of the descriptor, even on failure. If the file is not a
 * recording, writes a sentence to blocks->problem and returns false. */
bool spw_cli_blocks_open(struct spw_cli_blocks *blocks, int fd);
void spw_cli_blocks_close(struct spw_cli_blocks *blocks);

/* _next reads the next plain block. It returns false at the end of the file and at the first
 * invalid block. _rewind goes back to the first block. */
bool spw_cli_blocks_next(struct spw_cli_blocks *blocks);
void spw_cli_blocks_rewind(struct spw_cli_blocks *blocks);

/* Compresses the recording of a finished process. On failure, or if the file is not an uncompressed
 * recording, leaves the file unchanged and returns false. */
bool spw_cli_recording_compress(const char *path);
