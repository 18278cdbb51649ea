#include "cli/recording/blocks.h"

#include "cli/recording/zstd.h"
#include "record/checksum.h"
#include "system/fd.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    HEAD = sizeof(struct spw_record_block),
    PLAIN_MOST = SPW_RECORD_BLOCK - HEAD,
    STORED_MOST = SPW_RECORD_GROUP + SPW_RECORD_GROUP / 8, /* incompressible content grows */
};

static bool fail(struct spw_cli_blocks *blocks, const char *what)
{
    snprintf(blocks->problem, sizeof(blocks->problem), "byte %" PRIu64 ": %s", blocks->offset,
             what);
    return false;
}

/* ---- the file ---- */

static const char *check_header(const struct spw_record_header *header)
{
    if (header->magic != SPW_RECORD_MAGIC) {
        return (header->magic & 0xff) == '{'
                   ? "this is no recording of spillway (spillway sites shows a statistics file)"
                   : "this is no recording of spillway";
    }
    if (header->version < SPW_RECORD_VERSION_LEAST || header->version > SPW_RECORD_VERSION ||
        header->header_bytes != SPW_RECORD_HEADER || header->unit_ns != SPW_RECORD_UNIT_NS) {
        return "the recording is of another version of spillway";
    }
    if (header->crc != spw_record_checksum(0, header, offsetof(struct spw_record_header, crc))) {
        return "the header is damaged (its checksum is wrong)";
    }
    return header->devices > SPW_DEVICES_MAX ? "the header is damaged" : NULL;
}

bool spw_cli_blocks_recognise(const char *path)
{
    uint64_t magic = 0;
    int fd = spw_fd_open_regular(path);
    bool found = fd >= 0 && spw_fd_read_at(fd, &magic, sizeof(magic), 0);

    if (fd >= 0) {
        (void)close(fd);
    }
    return found && magic == SPW_RECORD_MAGIC;
}

bool spw_cli_blocks_open(struct spw_cli_blocks *blocks, int fd)
{
    struct stat status = {0};
    const char *problem;

    *blocks = (struct spw_cli_blocks){.fd = fd};
    if (fstat(fd, &status) != 0 || status.st_size < (off_t)sizeof(blocks->header) ||
        !spw_fd_read_at(fd, &blocks->header, sizeof(blocks->header), 0)) {
        problem = status.st_size == 0 ? "the file is empty: its process was killed at once"
                                      : "this is no recording of spillway";
    } else {
        problem = check_header(&blocks->header);
    }
    blocks->file_bytes = (uint64_t)status.st_size;
    blocks->stored = malloc(STORED_MOST);
    blocks->group = malloc(SPW_RECORD_GROUP);
    if (problem == NULL && (blocks->stored == NULL || blocks->group == NULL)) {
        problem = "not enough memory";
    }
    if (problem != NULL) {
        (void)fail(blocks, problem);
        spw_cli_blocks_close(blocks);
        return false;
    }
    spw_cli_blocks_rewind(blocks);
    return true;
}

void spw_cli_blocks_close(struct spw_cli_blocks *blocks)
{
    free(blocks->stored);
    free(blocks->group);
    blocks->stored = blocks->group = NULL;
    if (blocks->fd >= 0) {
        (void)close(blocks->fd);
    }
    blocks->fd = -1;
}

void spw_cli_blocks_rewind(struct spw_cli_blocks *blocks)
{
    blocks->offset = SPW_RECORD_HEADER;
    blocks->sequence = 0;
    blocks->group_at = blocks->group_bytes = 0;
    blocks->problem[0] = '\0';
}

/* ---- blocks ---- */

static bool is_sum_right(const struct spw_record_block *block, const void *content, size_t used)
{
    struct spw_record_block head = *block;

    head.crc = 0;
    return block->crc ==
           spw_record_checksum(spw_record_checksum(0, &head, sizeof(head)), content, used);
}

/* Takes a plain block whose content, of at most `most` bytes, is at `content`. */
static bool take_plain(struct spw_cli_blocks *blocks, const struct spw_record_block *block,
                       const uint8_t *content, size_t most)
{
    size_t used = block->used;

    if (used > PLAIN_MOST || used > most || block->codec != SPW_RECORD_PLAIN) {
        return fail(blocks, "the block is damaged");
    }
    if (block->sequence != blocks->sequence) {
        return fail(blocks, "a block is missing");
    }
    if (block->closed != 0 && !is_sum_right(block, content, used)) {
        return fail(blocks, "the block is damaged (its checksum is wrong)");
    }
    blocks->content = content;
    blocks->content_bytes = used;
    blocks->time = block->time;
    blocks->sequence++;
    return true;
}

static bool next_in_group(struct spw_cli_blocks *blocks)
{
    const uint8_t *at = blocks->group + blocks->group_at;
    size_t left = blocks->group_bytes - blocks->group_at;
    struct spw_record_block block;

    if (left < HEAD) {
        return fail(blocks, "the block is damaged");
    }
    memcpy(&block, at, sizeof(block));
    if (block.magic != SPW_RECORD_BLOCK_MAGIC || block.stride < HEAD || block.stride > left) {
        return fail(blocks, "the block is damaged");
    }
    blocks->group_at += block.stride;
    return take_plain(blocks, &block, at + HEAD, block.stride - HEAD);
}

static bool expand(struct spw_cli_blocks *blocks, const struct spw_record_block *block)
{
    if (block->content > SPW_RECORD_GROUP || block->closed == 0 ||
        !is_sum_right(block, blocks->stored, block->used)) {
        return fail(blocks, "the block is damaged (its checksum is wrong)");
    }
    if (!spw_cli_zstd_open()) {
        return fail(blocks, "the block is compressed, and there is no libzstd.so.1 here");
    }
    if (!spw_cli_zstd_decompress(blocks->group, block->content, blocks->stored, block->used)) {
        return fail(blocks, "the block cannot be decompressed");
    }
    blocks->group_at = 0;
    blocks->group_bytes = block->content;
    return true;
}

bool spw_cli_blocks_next(struct spw_cli_blocks *blocks)
{
    struct spw_record_block block;
    uint64_t offset = blocks->offset;

    if (blocks->problem[0] != '\0') {
        return false;
    }
    while (blocks->group_at >= blocks->group_bytes) {
        offset = blocks->offset;
        if (blocks->file_bytes < offset + HEAD ||
            !spw_fd_read_at(blocks->fd, &block, sizeof(block), (off_t)offset) || block.magic == 0) {
            return false; /* the end, or the empty rest of a killed process's file */
        }
        if (block.magic != SPW_RECORD_BLOCK_MAGIC || block.stride < HEAD ||
            block.used > block.stride - HEAD || block.used > STORED_MOST ||
            block.used > blocks->file_bytes - offset - HEAD ||
            !spw_fd_read_at(blocks->fd, blocks->stored, block.used, (off_t)offset + HEAD)) {
            return fail(blocks, "the block is damaged");
        }
        if (block.codec == SPW_RECORD_PLAIN) {
            bool taken = take_plain(blocks, &block, blocks->stored, block.stride - HEAD);

            blocks->offset += taken ? block.stride : 0;
            return taken;
        }
        if (block.codec != SPW_RECORD_ZSTD || !expand(blocks, &block)) {
            return blocks->problem[0] != '\0' ? false : fail(blocks, "the block is damaged");
        }
        blocks->offset += block.stride;
    }
    return next_in_group(blocks);
}
