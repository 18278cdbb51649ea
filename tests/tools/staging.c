#include "staging.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GRANULE = 2 << 20, BATCHES = 16, BATCH_BYTES = 256 << 10, REPORTS_MAX = 10 };

/* The stamp written at a place. Steps count from 1, so zeroed memory is no stamp. */
struct stamp {
    uint32_t step;
    uint32_t index;
    uint64_t place;
};

enum { STAMP = sizeof(struct stamp), RECORDS_MAX = BATCH_BYTES / STAMP };

/* `count` places at equal distances: one two-dimensional copy. */
struct run {
    uint64_t offset;
    uint64_t pitch;
    uint64_t width;
    uint64_t count;
    uint64_t first_place;
};

/* Stamps that were read back into the batch at `at` and still have to be compared. */
struct record {
    struct staging_buffer buffer;
    struct run run;
    size_t at;
};

/* A part of the pinned memory that several copies fill and that is compared as a whole. */
struct batch {
    char *memory;
    size_t used;
    struct record *records;
    size_t record_count;
    cudaEvent_t done[STAGING_STREAMS_MAX];
};

struct staging {
    const cudaStream_t *streams;
    int stream_count;
    char *memory;
    struct batch batches[BATCHES];
    int current;
    struct staging_figures figures;
};

static void fill(char *at, uint64_t width, struct stamp stamp)
{
    for (uint64_t done = 0; done < width; done += STAMP) {
        memcpy(at + done, &stamp, width - done < STAMP ? width - done : STAMP);
    }
}

/* The runs of a buffer, at most two. One too short for two stamps is filled with its only one. */
static int runs_of(uint64_t bytes, struct run ret_runs[2])
{
    if (bytes < 2 * STAMP) {
        ret_runs[0] = (struct run){0, bytes, bytes, 1, 0};
        return 1;
    }

    uint64_t last = bytes - STAMP;
    uint64_t rows = (last - STAMP) / GRANULE + 1;

    if (rows == 1) {
        ret_runs[0] = (struct run){0, last, STAMP, 2, 0};
        return 1;
    }
    ret_runs[0] = (struct run){0, GRANULE, STAMP, rows, 0};
    ret_runs[1] = (struct run){last, STAMP, STAMP, 1, rows};
    return 2;
}

static void report(struct staging *staging, const struct record *record, uint64_t place,
                   const char *found_bytes)
{
    const struct staging_buffer *buffer = &record->buffer;
    uint64_t offset = record->run.offset + (place - record->run.first_place) * record->run.pitch;
    struct stamp found = {0};

    if (staging->figures.mismatches++ >= REPORTS_MAX) {
        return;
    }
    memcpy(&found, found_bytes, record->run.width < STAMP ? record->run.width : STAMP);
    fprintf(stderr,
            "mismatch: buffer %" PRIu64 " of %" PRIu64 " bytes, step %u, at byte %" PRIu64
            ": expected stamp %u/%u/%" PRIu64 " (step/row/place), found %u/%u/%" PRIu64 "\n",
            buffer->id, buffer->bytes, buffer->step, offset, buffer->step, buffer->index, place,
            found.step, found.index, found.place);
}

static void compare(struct staging *staging, struct batch *batch, const struct record *record)
{
    char expected[2 * STAMP];

    for (uint64_t i = 0; i < record->run.count; i++) {
        uint64_t place = record->run.first_place + i;
        const char *found = batch->memory + record->at + i * record->run.width;

        fill(expected, record->run.width,
             (struct stamp){record->buffer.step, record->buffer.index, place});
        if (memcmp(found, expected, record->run.width) != 0) {
            report(staging, record, place, found);
        }
        staging->figures.places++;
    }
}

/* Waits for the copies of a batch, compares their data, and empties the batch. */
static cudaError_t settle(struct staging *staging, struct batch *batch)
{
    bool waited = false;

    for (int i = 0; i < staging->stream_count && batch->used > 0; i++) {
        cudaError_t err = cudaEventQuery(batch->done[i]);

        if (err == cudaErrorNotReady) {
            waited = true;
            err = cudaEventSynchronize(batch->done[i]);
        }
        if (err != cudaSuccess) {
            return err;
        }
    }
    staging->figures.host_waits += waited;
    for (size_t i = 0; i < batch->record_count; i++) {
        compare(staging, batch, &batch->records[i]);
    }
    batch->used = 0;
    batch->record_count = 0;
    return cudaSuccess;
}

static cudaError_t close_batch(struct staging *staging)
{
    for (int i = 0; i < staging->stream_count; i++) {
        cudaError_t err =
            cudaEventRecord(staging->batches[staging->current].done[i], staging->streams[i]);

        if (err != cudaSuccess) {
            return err;
        }
    }
    staging->current = (staging->current + 1) % BATCHES;
    return settle(staging, &staging->batches[staging->current]);
}

/* Room for `bytes`, at most BATCH_BYTES, in the batch that is being filled. Every piece takes at
 * least one stamp's room, so a batch never holds more than RECORDS_MAX records. */
static cudaError_t take(struct staging *staging, size_t bytes, char **ret_memory)
{
    bytes = (bytes + STAMP - 1) / STAMP * STAMP;
    if (staging->batches[staging->current].used + bytes > BATCH_BYTES) {
        cudaError_t err = close_batch(staging);

        if (err != cudaSuccess) {
            return err;
        }
    }

    struct batch *batch = &staging->batches[staging->current];

    *ret_memory = batch->memory + batch->used;
    batch->used += bytes;
    return cudaSuccess;
}

static cudaError_t copy(void *to, uint64_t to_pitch, const void *from, uint64_t from_pitch,
                        const struct run *run, enum cudaMemcpyKind kind, cudaStream_t stream)
{
    if (run->count == 1) {
        return cudaMemcpyAsync(to, from, run->width, kind, stream);
    }
    return cudaMemcpy2DAsync(to, to_pitch, from, from_pitch, run->width, run->count, kind, stream);
}

static cudaError_t write_run(struct staging *staging, const struct staging_buffer *buffer,
                             const struct run *run, cudaStream_t stream)
{
    char *memory = NULL;
    cudaError_t err = take(staging, run->width * run->count, &memory);

    if (err != cudaSuccess) {
        return err;
    }
    for (uint64_t i = 0; i < run->count; i++) {
        fill(memory + i * run->width, run->width,
             (struct stamp){buffer->step, buffer->index, run->first_place + i});
    }
    return copy((char *)buffer->address + run->offset, run->pitch, memory, run->width, run,
                cudaMemcpyHostToDevice, stream);
}

static cudaError_t check_run(struct staging *staging, const struct staging_buffer *buffer,
                             const struct run *run, cudaStream_t stream)
{
    char *memory = NULL;
    cudaError_t err = take(staging, run->width * run->count, &memory);

    if (err != cudaSuccess) {
        return err;
    }

    struct batch *batch = &staging->batches[staging->current];

    batch->records[batch->record_count++] =
        (struct record){*buffer, *run, (size_t)(memory - batch->memory)};
    return copy(memory, run->width, (const char *)buffer->address + run->offset, run->pitch, run,
                cudaMemcpyDeviceToHost, stream);
}

typedef cudaError_t run_function(struct staging *, const struct staging_buffer *,
                                 const struct run *, cudaStream_t);

/* Applies `act` to every place of the buffer, in pieces that fit a batch. */
static cudaError_t each_run(struct staging *staging, const struct staging_buffer *buffer,
                            int stream, run_function *act)
{
    struct run runs[2];
    int count = runs_of(buffer->bytes, runs);

    for (int i = 0; i < count; i++) {
        struct run rest = runs[i];

        while (rest.count > 0) {
            struct run piece = rest;

            if (piece.count > RECORDS_MAX) {
                piece.count = RECORDS_MAX;
            }

            cudaError_t err = act(staging, buffer, &piece, staging->streams[stream]);

            if (err != cudaSuccess) {
                return err;
            }
            rest.offset += piece.count * rest.pitch;
            rest.first_place += piece.count;
            rest.count -= piece.count;
        }
    }
    return cudaSuccess;
}

cudaError_t staging_write(struct staging *staging, const struct staging_buffer *buffer, int stream)
{
    return each_run(staging, buffer, stream, write_run);
}

cudaError_t staging_check(struct staging *staging, const struct staging_buffer *buffer, int stream)
{
    return each_run(staging, buffer, stream, check_run);
}

static cudaError_t create_batch(struct batch *batch, char *memory, int stream_count)
{
    batch->memory = memory;
    batch->records = calloc(RECORDS_MAX, sizeof(*batch->records));
    if (batch->records == NULL) {
        return cudaErrorMemoryAllocation;
    }
    for (int i = 0; i < stream_count; i++) {
        cudaError_t err = cudaEventCreateWithFlags(&batch->done[i], cudaEventDisableTiming);

        if (err != cudaSuccess) {
            return err;
        }
    }
    return cudaSuccess;
}

cudaError_t staging_create(const cudaStream_t *streams, int stream_count,
                           struct staging **ret_staging)
{
    struct staging *staging = NULL;
    cudaError_t err = cudaErrorInvalidValue;

    if (stream_count < 1 || stream_count > STAGING_STREAMS_MAX) {
        return err;
    }
    staging = calloc(1, sizeof(*staging));
    if (staging == NULL) {
        return cudaErrorMemoryAllocation;
    }
    staging->streams = streams;
    staging->stream_count = stream_count;

    err = cudaHostAlloc((void **)&staging->memory, (size_t)BATCHES * BATCH_BYTES,
                        cudaHostAllocDefault);
    for (int i = 0; i < BATCHES && err == cudaSuccess; i++) {
        err = create_batch(&staging->batches[i], staging->memory + (size_t)i * BATCH_BYTES,
                           stream_count);
    }
    if (err != cudaSuccess) {
        staging_destroy(staging);
        return err;
    }
    *ret_staging = staging;
    return cudaSuccess;
}

cudaError_t staging_finish(struct staging *staging, struct staging_figures *ret_figures)
{
    cudaError_t err = cudaDeviceSynchronize();

    for (int i = 0; i < BATCHES && err == cudaSuccess; i++) {
        err = settle(staging, &staging->batches[i]);
    }
    *ret_figures = staging->figures;
    return err;
}

void staging_destroy(struct staging *staging)
{
    if (staging == NULL) {
        return;
    }
    for (int i = 0; i < BATCHES; i++) {
        for (int k = 0; k < staging->stream_count; k++) {
            if (staging->batches[i].done[k] != NULL) {
                (void)cudaEventDestroy(staging->batches[i].done[k]);
            }
        }
        free(staging->batches[i].records);
    }
    (void)cudaFreeHost(staging->memory);
    free(staging);
}
