#include "migrate/host/swap.h"

#include "common/grow.h"

#include <errno.h>
#include <stdlib.h>

/* The size of the next piece of `bytes` that fits the buffer. */
static size_t piece_of(uint64_t bytes)
{
    return bytes < SPW_SWAP_BUFFER_BYTES ? (size_t)bytes : SPW_SWAP_BUFFER_BYTES;
}

/* ---- out ---- */

/* The error of a copy between the buffer and the device. The copy may have been accepted. */
static int copy_error(struct spw_swap_file *file, enum spw_err err)
{
    file->keeps_buffer |= err != SPW_OK;
    return err == SPW_OK ? 0 : EIO;
}

/* Writes the content of a chunk to the file. Returns an error of errno. */
static int save(struct spw_pool *pool, struct spw_swap_file *file, struct spw_swapped *out)
{
    int error = 0;

    for (uint64_t done = 0, piece; done < out->chunk.bytes && error == 0; done += piece) {
        piece = piece_of(out->chunk.bytes - done);
        error =
            copy_error(file, spw_pool_read(pool, file->buffer, out->chunk.address + done, piece));
        if (error == 0) {
            error = spw_migrate_swap_file_append(file, piece, &out->hash);
        }
    }
    return error;
}

/* The bytes that spw_migrate_swap_out would write. */
static uint64_t bytes_to_save(struct spw_pool *pool)
{
    struct spw_swap_chunk chunk;
    uint64_t at = 0, bytes = 0;

    while (spw_pool_swap_find(pool, at, &chunk)) {
        at = chunk.address + chunk.bytes;
        bytes += chunk.bytes;
    }
    return bytes;
}

struct spw_swap_result spw_migrate_swap_out(struct spw_swap *swap, struct spw_pool *pool,
                                            struct spw_swap_file *file)
{
    struct spw_swap_result result = {0};
    struct spw_swapped out = {0};
    uint64_t at = 0;

    spw_migrate_swap_file_reserve(file, bytes_to_save(pool));
    while (result.error == 0 && spw_pool_swap_find(pool, at, &out.chunk)) {
        at = out.chunk.address + out.chunk.bytes;
        out.offset = file->end;
        out.hash = 0;
        result.error = SPW_GROW(&swap->chunks, &swap->capacity, swap->count + 1)
                           ? save(pool, file, &out)
                           : ENOMEM;
        if (result.error == 0 && spw_pool_swap_out(pool, &out.chunk) == SPW_OK) {
            swap->chunks[swap->count++] = out;
            result.bytes += out.chunk.bytes;
        } else {
            spw_migrate_swap_file_cut(file, out.offset);
        }
    }
    return result;
}

/* ---- in ---- */

/* Maps memory for a chunk. */
static enum spw_err map(struct spw_pool *pool, struct spw_swapped *out, bool host)
{
    enum spw_err err = spw_pool_swap_in(pool, &out->chunk, out->chunk.tier);

    if (err != SPW_OK && host && out->chunk.tier == SPW_TIER_DEVICE) {
        err = spw_pool_swap_in(pool, &out->chunk, SPW_TIER_HOST);
    }
    return err;
}

/* Reads the content of a chunk from the file. Returns an error of errno; EBADMSG if the content has
 * changed. */
static int load(struct spw_pool *pool, struct spw_swap_file *file, const struct spw_swapped *out)
{
    uint64_t hash = 0, piece;

    for (uint64_t done = 0; done < out->chunk.bytes; done += piece) {
        int error;

        piece = piece_of(out->chunk.bytes - done);
        error = spw_migrate_swap_file_read(file, out->offset + done, piece, &hash);
        if (error == 0) {
            error = copy_error(
                file, spw_pool_write(pool, out->chunk.address + done, file->buffer, piece));
        }
        if (error != 0) {
            return error;
        }
    }
    return hash == out->hash ? 0 : EBADMSG;
}

static int compare(const void *left, const void *right)
{
    const struct spw_swap_chunk *a = &((const struct spw_swapped *)left)->chunk;
    const struct spw_swap_chunk *b = &((const struct spw_swapped *)right)->chunk;

    if (a->rank != b->rank) {
        return a->rank < b->rank ? -1 : 1;
    }
    return a->address < b->address ? -1 : 1;
}

struct spw_swap_result spw_migrate_swap_in(struct spw_swap *swap, struct spw_pool *pool,
                                           struct spw_swap_file *file, bool host)
{
    struct spw_swap_result result = {0};
    size_t left = 0;

    if (swap->count > 0) {
        qsort(swap->chunks, swap->count, sizeof(*swap->chunks), compare);
    }
    for (size_t i = 0; i < swap->count; i++) {
        struct spw_swapped *out = &swap->chunks[i];
        int error;

        out->mapped = out->mapped || map(pool, out, host) == SPW_OK;
        error = out->mapped ? load(pool, file, out) : 0;
        if (out->mapped && error == 0) {
            result.bytes += out->chunk.bytes;
        } else {
            result.left += out->chunk.bytes;
            result.error = error != 0 ? error : result.error;
            swap->chunks[left++] = *out;
        }
    }
    swap->count = left;
    return result;
}

void spw_migrate_swap_fini(struct spw_swap *swap)
{
    free(swap->chunks);
    *swap = (struct spw_swap){0};
}
