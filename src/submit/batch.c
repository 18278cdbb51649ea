#include "submit/batch.h"

#include <stdlib.h>

#include "program/users.h"
#include "submit/parts.h"
#include "submit/rows.h"

/* The number of parts of a copy. */
static size_t count_parts(struct spw_parts *parts)
{
    size_t count = 0;

    while (spw_submit_parts_next(parts, CUDA_SUCCESS)) {
        count++;
    }
    return count;
}

/* ---- copies of bytes ---- */

void spw_submit_batch_note(const struct spw_batch *batch, CUstream stream, bool per_thread)
{
    if (batch->to != NULL && batch->from != NULL) {
        spw_program_users_note((const uint64_t *)batch->to, batch->count, stream, per_thread);
        spw_program_users_note((const uint64_t *)batch->from, batch->count, stream, per_thread);
    }
}

static size_t count_all(const struct spw_batch *batch)
{
    struct spw_parts parts;
    size_t count = 0;

    for (size_t i = 0; i < batch->count; i++) {
        spw_submit_parts_copy(&parts, batch->to[i], batch->from[i], batch->bytes[i]);
        count += count_parts(&parts);
    }
    return count;
}

static bool make(struct spw_batch *split, size_t count, size_t attributes)
{
    *split = (struct spw_batch){.to = malloc(count * sizeof(*split->to)),
                                .from = malloc(count * sizeof(*split->from)),
                                .bytes = malloc(count * sizeof(*split->bytes)),
                                .firsts = malloc((attributes + 1) * sizeof(*split->firsts)),
                                .attributes = attributes,
                                .origins = malloc(count * sizeof(*split->origins))};
    if (split->to != NULL && split->from != NULL && split->bytes != NULL && split->firsts != NULL &&
        split->origins != NULL) {
        return true;
    }
    (void)spw_submit_batch_end(split, SIZE_MAX);
    return false;
}

static void split_copy(struct spw_batch *split, const struct spw_batch *batch, size_t index)
{
    struct spw_parts parts;

    spw_submit_parts_copy(&parts, batch->to[index], batch->from[index], batch->bytes[index]);
    while (spw_submit_parts_next(&parts, CUDA_SUCCESS)) {
        split->to[split->count] = batch->to[index] + spw_submit_parts_at(&parts);
        split->from[split->count] = batch->from[index] + spw_submit_parts_at(&parts);
        split->bytes[split->count] = spw_submit_parts_count(&parts);
        split->origins[split->count++] = index;
    }
}

bool spw_submit_batch_split(const struct spw_batch *batch, struct spw_batch *ret_split)
{
    size_t count;

    if (batch->to == NULL || batch->from == NULL || batch->bytes == NULL || batch->firsts == NULL) {
        return false;
    }
    count = count_all(batch);
    if (count == batch->count || !make(ret_split, count, batch->attributes)) {
        return false;
    }
    for (size_t i = 0, next = 0; i < batch->count; i++) {
        for (; next < batch->attributes && batch->firsts[next] <= i; next++) {
            ret_split->firsts[next] = ret_split->count;
        }
        split_copy(ret_split, batch, i);
    }
    return true;
}

size_t spw_submit_batch_end(struct spw_batch *split, size_t failed)
{
    size_t origin = failed < split->count ? split->origins[failed] : failed;

    free(split->to);
    free(split->from);
    free(split->bytes);
    free(split->firsts);
    free(split->origins);
    return origin;
}

/* ---- copies of volumes ---- */

void spw_submit_batch_note_3d(const struct spw_batch_3d *batch, CUstream stream, bool per_thread)
{
    for (size_t i = 0; batch->copies != NULL && i < batch->count; i++) {
        struct spw_parts parts;

        spw_submit_parts_box(&parts, spw_submit_rows_batched(&batch->copies[i]));
        spw_submit_parts_note(&parts, stream, per_thread);
    }
}

static size_t count_all_3d(const struct spw_batch_3d *batch)
{
    struct spw_parts parts;
    size_t count = 0;

    for (size_t i = 0; i < batch->count; i++) {
        spw_submit_parts_box(&parts, spw_submit_rows_batched(&batch->copies[i]));
        count += count_parts(&parts);
    }
    return count;
}

static void split_copy_3d(struct spw_batch_3d *split, const CUDA_MEMCPY3D_BATCH_OP *copy,
                          size_t index)
{
    struct spw_parts parts;

    spw_submit_parts_box(&parts, spw_submit_rows_batched(copy));
    while (spw_submit_parts_next(&parts, CUDA_SUCCESS)) {
        split->copies[split->count] = *copy;
        spw_submit_rows_cut_batched(&split->copies[split->count], &parts.cut.box, &parts.cut.part);
        split->origins[split->count++] = index;
    }
}

bool spw_submit_batch_split_3d(const struct spw_batch_3d *batch, struct spw_batch_3d *ret_split)
{
    size_t count = batch->copies != NULL ? count_all_3d(batch) : batch->count;

    if (count == batch->count) {
        return false;
    }
    *ret_split = (struct spw_batch_3d){.copies = malloc(count * sizeof(*ret_split->copies)),
                                       .origins = malloc(count * sizeof(*ret_split->origins))};
    if (ret_split->copies == NULL || ret_split->origins == NULL) {
        (void)spw_submit_batch_end_3d(ret_split, SIZE_MAX);
        return false;
    }
    for (size_t i = 0; i < batch->count; i++) {
        split_copy_3d(ret_split, &batch->copies[i], i);
    }
    return true;
}

size_t spw_submit_batch_end_3d(struct spw_batch_3d *split, size_t failed)
{
    size_t origin = failed < split->count ? split->origins[failed] : failed;

    free(split->copies);
    free(split->origins);
    return origin;
}
