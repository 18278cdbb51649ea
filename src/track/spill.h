/* What the pool refuses, asked of the host tier. Locking: the tier's and the pool's, inside. */
#pragma once

#include "track/request.h"

/* Gives memory of the device back to the driver by moving blocks to the host. False when none was.
 */
bool spw_track_spill_yield(struct spw_device *device, struct spw_pool *pool);

/* Whether the calling thread's request is of PyTorch's native allocator, which frees its cache when
 * it is refused and asks again: that is better than to spill while the cache holds what nobody
 * uses. True once for a request: one of the same size, or before anything else was served, counts
 * as the second attempt. Never while a capture is open: it does not ask again then. */
bool spw_track_spill_asks_again(const struct spw_device *device, uint64_t bytes);

/* Moves blocks of the device to the host; what they had is spare then. False when none was moved.
 */
bool spw_track_spill_away(struct spw_device *device);

/* Charges `bytes` of the program's own physical memory, refused on the device, to the host: it is
 * to be created on *ret_node then. Answers `refused` when there is no tier or no room. */
enum spw_err spw_track_spill_charge(struct spw_device *device, uint64_t bytes, uint32_t site,
                                    enum spw_err refused, int *ret_node);

/* Whether it is of use to tell the stream of the next call: finding it may take a driver call. */
bool spw_track_spill_follows(const struct spw_device *device);

/* What a call is about to use, before it passes the gate, on `stream` (NULL: not looked for, not to
 * be told, or of another device); and the same inside the gate, when it is known to be all, as far
 * as its arguments go: a `kernel` may find more in memory. */
void spw_track_spill_expect(struct spw_device *device, const uint64_t *addresses, size_t count,
                            const struct spw_stream *stream);
void spw_track_spill_use(struct spw_device *device, const uint64_t *addresses, size_t count,
                         bool kernel);

/* The same inside the gate, when the call may use anything else besides. */
void spw_track_spill_use_among(struct spw_device *device, const uint64_t *addresses, size_t count);

/* The call, told next, is of a kernel that was never launched before. */
void spw_track_spill_meet_kernel(struct spw_device *device);

/* Whether the host has room for more, as far as is known. */
bool spw_track_spill_has_room(struct spw_device *device);

/* A capture is about to begin. */
void spw_track_spill_prepare(struct spw_device *device);

/* The program has waited for the device, or a stream of it: what has room there may come back. */
void spw_track_spill_rest(struct spw_device *device);

/* A block for which the pool answered `refused`, with the wishes of a rule or NULL: on the device
 * if room can be made, else on the host. Answers `refused` when there is no tier or it has no room
 * either, and SPW_E_AGAIN when the caller is to be refused because it gives up memory of its own
 * then and asks again. */
enum spw_err spw_track_spill_alloc(const struct spw_request *request,
                                   const struct spw_pool_placement *wish, enum spw_err refused,
                                   uint64_t *ret_address);

/* After the real driver was out of memory: gives the spare memory of every pool back to it, since
 * the call does not tell which device was full; without spare memory, blocks go to the host. False
 * when nothing could be freed. */
bool spw_track_spill_make_room(void);

/* Calls the real driver; after out of memory once more if room could be made meanwhile. */
#define SPW_FORWARD(result, call)                                                                  \
    do {                                                                                           \
        (result) = (call);                                                                         \
        if (SPW_UNLIKELY((result) == CUDA_ERROR_OUT_OF_MEMORY) && spw_track_spill_make_room()) {   \
            (result) = (call);                                                                     \
        }                                                                                          \
    } while (0)
