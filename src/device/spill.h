/* The host tier of a device, as the handlers use it, for allocations that the pool refuses.
 *
 * Functions do nothing, and answer false, on a device without a host tier. Locking: the tier's and
 * the pool's locks, inside. */
#pragma once

#include "device/tier.h"

/* Ends moves that are complete, since they pin free memory. Called before free memory is given
 * back. */
void spw_device_settle(const struct spw_device *device);

/* Gives back the free memory of a device's pool, on device and host. At least `keep_bytes` stay on
 * the device. */
void spw_device_trim(struct spw_device *device, uint64_t keep_bytes);

/* Gives device memory back to the driver by moving blocks to the host. False when no block was
 * moved. */
bool spw_device_yield(struct spw_device *device, struct spw_pool *pool);

/* True when the calling thread's request comes from PyTorch's native allocator and is to be refused
 * once. The allocator then frees its cache and asks again, which is better than spilling blocks
 * while the cache holds unused memory. A request of the size that was last refused, or the first
 * request after a refusal, counts as the second attempt. False for private pools and while a
 * capture is open, since the allocator does not ask again in these cases. */
bool spw_device_asks_again(const struct spw_device *device, uint64_t bytes);

/* A request that spw_device_alloc answered by SPW_E_AGAIN. */
struct spw_device_postponed {
    struct spw_device *device;
    uint64_t bytes;
    uint32_t site;
    enum spw_err refused;
};

/* True once if PyTorch's native allocator, against expectation, did not ask again but reported out
 * of memory to the program. An example is a private pool that is open on another thread. To be
 * called by the handler of cuMemGetInfo, since the allocator reads the figures for its message. */
bool spw_device_gave_up(struct spw_device_postponed *ret_postponed);

/* Moves blocks to the host; their device memory stays in the pool, unused. False when no block was
 * moved. */
bool spw_device_evict(struct spw_device *device);

/* Charges to the limit `bytes` that the real driver allocates. Moves blocks to the host while the
 * limit has no room. If there is still no room, a library that shares its memory may exceed the
 * limit while the device has memory; other callers get SPW_E_LIMIT. */
enum spw_err spw_device_charge(struct spw_device *device, struct spw_pool *pool, uint64_t bytes,
                               uint32_t site);

/* Charges `bytes` of the program's own physical memory to the host. `refused` is the reason why the
 * device refused them, or SPW_OK if a policy places them on the host. The caller creates the memory
 * at *ret_place. SPW_E_LIMIT, or `refused`, when there is no tier or the host has no room. */
enum spw_err spw_device_charge_host(struct spw_device *device, uint64_t bytes, uint32_t site,
                                    enum spw_err refused, CUmemLocation *ret_place);

/* Brings the blocks at `addresses` back to the device, since a graph that names them is about to be
 * launched. False when a part of these blocks stays on the host. To be called without the submit
 * barrier. */
bool spw_device_fetch(struct spw_device *device, const uint64_t *addresses, size_t count);

/* True unless the host is known to have no more room. */
bool spw_device_has_room(struct spw_device *device);

/* Prepares for a capture. During a capture nothing can be moved or tried out. Nor can a fence be
 * recorded behind a free, so that freed memory could not go back to the driver, which may need it
 * for the graph's nodes. */
void spw_device_prepare(struct spw_device *device);

/* Moves back the blocks that fit, after the program has waited for the device or one of its
 * streams. */
void spw_device_idle(struct spw_device *device);

/* Allocates a block that the pool refused with `refused`: on the device if room can be made,
 * otherwise on the host. Returns `refused` when there is no tier or no room on the host, and
 * SPW_E_AGAIN when the request is refused just once (spw_device_asks_again). */
enum spw_err spw_device_alloc(struct spw_device *device, const struct spw_request *request,
                              enum spw_err refused, struct spw_result *ret_result);

/* Makes room after the real driver was out of memory. Gives it the spare memory of every pool,
 * since it is not known which device was full. Without spare memory, moves blocks to the host. If
 * that fails too, waits a short time for memory that was freed. False when nothing could be
 * freed. */
bool spw_device_make_room(void);

/* Calls the real driver. After out of memory, calls it once more if room could be made. */
#define SPW_FORWARD(result, call)                                                                  \
    do {                                                                                           \
        (result) = (call);                                                                         \
        if (SPW_UNLIKELY((result) == CUDA_ERROR_OUT_OF_MEMORY) && spw_device_make_room()) {        \
            (result) = (call);                                                                     \
        }                                                                                          \
    } while (0)
