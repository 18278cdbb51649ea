/* The functions of a device's host tier that handlers call when the pool refuses an allocation.
 *
 * On a device without a host tier, no function moves a block. Locking: the functions take the locks
 * of the tier and of the pool. */
#pragma once

#include "device/tier.h"

/* Ends completed moves, because they pin free memory. Called before free memory is given back to
 * the driver. */
void spw_device_settle(const struct spw_device *device);

/* Gives the free memory of a device's pool back to the driver, both device and host memory. At
 * least `keep_bytes` stay on the device. */
void spw_device_trim(struct spw_device *device, uint64_t keep_bytes);

/* Returns true if `bytes` more may be taken from a memory that device and host share. If there is
 * no room for them, first gives free memory of the pool back. Always true if the device has memory
 * of its own. Must not be called with a lock held. */
bool spw_device_allows(struct spw_device *device, uint64_t bytes);

/* Gives device memory back to the driver by moving blocks to the host. Returns false if no block
 * was moved. */
bool spw_device_yield(struct spw_device *device, struct spw_pool *pool);

/* Returns true if the calling thread's request comes from PyTorch's native allocator and should be
 * refused once. The allocator then frees its cache and repeats the request. This is better than
 * spilling blocks while the cache holds unused memory. A request counts as a repetition if the last
 * refused request had its size, or if it is the first request after a refusal. Returns false for
 * private pools and while a capture is open, because the allocator does not repeat its request in
 * these cases. */
bool spw_device_asks_again(const struct spw_device *device, uint64_t bytes);

/* A request that spw_device_alloc answered with SPW_E_AGAIN. */
struct spw_device_postponed {
    struct spw_device *device;
    uint64_t bytes;
    uint32_t site;
    enum spw_err refused;
};

/* Returns true once if PyTorch's native allocator did not repeat its request as expected, but
 * reported out of memory to the program. An example is a private pool that is open on another
 * thread. Called by the handler of cuMemGetInfo, because the allocator calls cuMemGetInfo to write
 * its error message. */
bool spw_device_gave_up(struct spw_device_postponed *ret_postponed);

/* Moves blocks to the host. The device memory of these blocks stays in the pool, unused. Returns
 * false if no block was moved. */
bool spw_device_evict(struct spw_device *device);

/* Charges `bytes` to the limit for an allocation of the real driver. If the limit has no room,
 * moves blocks to the host. If there is still no room, a library that shares its memory may exceed
 * the limit while the device has memory. Other callers get SPW_E_LIMIT. */
enum spw_err spw_device_charge(struct spw_device *device, struct spw_pool *pool, uint64_t bytes,
                               uint32_t site);

/* Charges `bytes` of the program's own physical memory to the host. `refused` is the device's
 * error; SPW_OK if a policy places the memory on the host. The caller creates the memory at
 * *ret_place. Without a tier, or without room on the host, returns `refused`; SPW_E_LIMIT if
 * `refused` is SPW_OK. */
enum spw_err spw_device_charge_host(struct spw_device *device, uint64_t bytes, uint32_t site,
                                    enum spw_err refused, CUmemLocation *ret_place);

/* Moves the blocks at `addresses` back to the device. Called when a graph that uses these blocks is
 * about to be launched. Returns false if a part of the blocks stays on the host; true without a
 * host tier. The caller must not be inside the submit barrier. */
bool spw_device_fetch(struct spw_device *device, const uint64_t *addresses, size_t count);

/* Returns false if there is no host tier, or if the host is known to have no more room. */
bool spw_device_has_room(struct spw_device *device);

/* Prepares for a capture. During a capture, blocks cannot move, and the host tier cannot be tested.
 * It is also not possible to record a fence behind a free. Memory that is freed then cannot go back
 * to the driver, which may need it for the nodes of the graph. */
void spw_device_prepare(struct spw_device *device);

/* Moves blocks back to the device if they fit. Called after the program has waited for the device
 * or one of its streams. */
void spw_device_idle(struct spw_device *device);

/* Called when the driver has reported an illegal address. If memory was unmapped for a move,
 * logs once that a kernel may have used this memory without naming it. The line is written when the
 * call returns, also if another thread writes it. */
void spw_device_explain_fault(void);

/* Allocates a block that the pool refused with error `refused`. The block is on the device if room
 * can be made there, otherwise on the host. Returns `refused` if there is no tier or no room on the
 * host. Returns SPW_E_AGAIN if the caller should refuse the request once
 * (spw_device_asks_again). */
enum spw_err spw_device_alloc(struct spw_device *device, const struct spw_request *request,
                              enum spw_err refused, struct spw_result *ret_result);

/* Makes room after the real driver was out of memory. Gives the spare memory of every pool back to
 * the driver, because it is unknown which device was full. If there is no spare memory, moves
 * blocks to the host. If that fails as well, waits a short time for memory that was freed. Returns
 * false if no memory could be freed. */
bool spw_device_make_room(void);

/* Gives host memory that no block uses back to the driver, because the driver refused page-locked
 * memory to the program. Returns false if there is none. */
bool spw_device_make_host_room(void);

/* Room is made so many times for a call at most. What is freed at first may be less than the call
 * needs: one spare chunk, for example, when the code of a kernel needs two. A call that can never
 * succeed must not empty the device, so there are few tries. */
enum { SPW_DEVICE_ROOM_TRIES = 8 };

/* Calls the real driver. While it is out of memory and room can be made, repeats the call. */
#define SPW_FORWARD(result, call)                                                                  \
    do {                                                                                           \
        (result) = (call);                                                                         \
        for (int tries = SPW_DEVICE_ROOM_TRIES;                                                    \
             SPW_UNLIKELY((result) == CUDA_ERROR_OUT_OF_MEMORY) && tries > 0 &&                    \
             spw_device_make_room();                                                               \
             tries--) {                                                                            \
            (result) = (call);                                                                     \
        }                                                                                          \
    } while (0)
