/* Patterns in device memory, written and checked without blocking the host.
 *
 * Every buffer carries stamps: in its first and last bytes and at one place in every 2 MiB, so that
 * each granule of device memory under it has one. A stamp names buffer, step and place, so a wrong
 * one tells who overwrote it. Stamps travel through pinned memory by asynchronous copies; what was
 * read back is compared when its batch of copies is known to be complete, at the latest when the
 * batch is used again. Not locked: for one thread. */
#pragma once

#include <cuda_runtime_api.h>
#include <stddef.h>
#include <stdint.h>

struct staging;

enum { STAGING_STREAMS_MAX = 64 };

/* The identity of a stamped buffer, for its stamps and for messages. */
struct staging_buffer {
    void *address;
    uint64_t bytes;
    uint64_t id;    /* for messages */
    uint32_t index; /* unique among the live buffers */
    uint32_t step;
};

struct staging_figures {
    uint64_t places;     /* stamps compared */
    uint64_t mismatches; /* of them wrong; the first few are reported on stderr */
    uint64_t host_waits; /* how often the host had to wait for a batch: the ring was too small */
};

/* `streams` (not owned) are all the streams that the other calls will name. */
cudaError_t staging_create(const cudaStream_t *streams, int stream_count,
                           struct staging **ret_staging);

/* Queues the writing of the stamps on the stream with that index. */
cudaError_t staging_write(struct staging *staging, const struct staging_buffer *buffer, int stream);

/* Queues the reading of the stamps; they are compared later. */
cudaError_t staging_check(struct staging *staging, const struct staging_buffer *buffer, int stream);

/* Waits for all queued work and compares the remaining stamps. */
cudaError_t staging_finish(struct staging *staging, struct staging_figures *ret_figures);

/* Takes NULL. */
void staging_destroy(struct staging *staging);
