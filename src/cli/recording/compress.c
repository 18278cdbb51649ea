#include "cli/recording/blocks.h"

#include "cli/recording/zstd.h"
#include "record/checksum.h"
#include "system/create.h"
#include "system/fd.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    HEAD = sizeof(struct spw_record_block),
    ROOM = SPW_RECORD_GROUP + SPW_RECORD_GROUP / 8,
};

/* Plain blocks that are compressed together. */
struct group {
    int fd;
    uint32_t sequence;
    size_t used;
    uint8_t *plain, *packed; /* `packed` begins with room for a header */
};

static bool write_group(struct group *group)
{
    size_t packed = group->used == 0 ? 0
                                     : spw_cli_zstd_compress(group->packed + HEAD, ROOM,
                                                             group->plain, group->used);
    struct spw_record_block block = {
        .magic = SPW_RECORD_BLOCK_MAGIC,
        .sequence = group->sequence++,
        .stride = (uint32_t)(HEAD + packed),
        .used = (uint32_t)packed,
        .content = (uint32_t)group->used,
        .codec = SPW_RECORD_ZSTD,
        .closed = 1,
    };

    if (packed == 0) {
        return group->used == 0;
    }
    block.crc = spw_record_checksum(spw_record_checksum(0, &block, sizeof(block)),
                                    group->packed + HEAD, packed);
    memcpy(group->packed, &block, sizeof(block));
    group->used = 0;
    return spw_fd_write(group->fd, (const char *)group->packed, HEAD + packed);
}

/* Adds a plain block without its unused bytes. */
static bool add_block(struct group *group, const struct spw_cli_blocks *blocks)
{
    struct spw_record_block block = {
        .magic = SPW_RECORD_BLOCK_MAGIC,
        .sequence = blocks->sequence - 1,
        .stride = (uint32_t)(HEAD + blocks->content_bytes),
        .used = (uint32_t)blocks->content_bytes,
        .content = (uint32_t)blocks->content_bytes,
        .codec = SPW_RECORD_PLAIN,
        .closed = 1,
        .time = blocks->time,
    };

    if (group->used + block.stride > SPW_RECORD_GROUP && !write_group(group)) {
        return false;
    }
    block.crc = spw_record_checksum(spw_record_checksum(0, &block, sizeof(block)), blocks->content,
                                    blocks->content_bytes);
    memcpy(group->plain + group->used, &block, sizeof(block));
    memcpy(group->plain + group->used + HEAD, blocks->content, blocks->content_bytes);
    group->used += block.stride;
    return true;
}

static bool write_header(int fd, const struct spw_cli_blocks *blocks)
{
    static char page[SPW_RECORD_HEADER];

    memset(page, 0, sizeof(page));
    memcpy(page, &blocks->header, sizeof(blocks->header));
    return spw_fd_write(fd, page, sizeof(page));
}

static bool write_all(int fd, struct spw_cli_blocks *blocks)
{
    struct group group = {
        .fd = fd, .plain = malloc(SPW_RECORD_GROUP), .packed = malloc(HEAD + ROOM)};
    bool done = group.plain != NULL && group.packed != NULL && write_header(fd, blocks);

    while (done && spw_cli_blocks_next(blocks)) {
        done = add_block(&group, blocks);
    }
    done = done && blocks->problem[0] == '\0' && write_group(&group);
    free(group.plain);
    free(group.packed);
    return done;
}

/* Returns true for a recording whose first block is plain. */
static bool is_plain(const struct spw_cli_blocks *blocks)
{
    struct spw_record_block block;

    return spw_fd_read_at(blocks->fd, &block, sizeof(block), SPW_RECORD_HEADER) &&
           block.magic == SPW_RECORD_BLOCK_MAGIC && block.codec == SPW_RECORD_PLAIN;
}

bool spw_cli_recording_compress(const char *path)
{
    int fd = spw_cli_zstd_open() ? spw_fd_open_regular(path) : -1;
    struct spw_cli_blocks blocks;
    struct stat status;
    char name[PATH_MAX];
    bool done = false;
    int to;

    if (fd < 0 || !spw_cli_blocks_open(&blocks, fd)) {
        return false;
    }
    to = is_plain(&blocks) && fstat(fd, &status) == 0
             ? spw_create_beside(path, status.st_mode & 0666, name, sizeof(name))
             : -1;
    if (to >= 0) {
        done = write_all(to, &blocks);
        done = close(to) == 0 && done && rename(name, path) == 0;
        if (!done) {
            (void)unlink(name);
        }
    }
    spw_cli_blocks_close(&blocks);
    return done;
}
