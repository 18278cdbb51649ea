/* The interface that the pool needs from a device.
 *
 * src/backend implements it with the CUDA driver; the unit tests implement it with plain memory.
 * The pool calls it with its own lock held, except wait_host, wait_soon and seek_host. Members may
 * be called from any thread, and must not call back into the pool. Addresses and sizes are
 * multiples of the pool's granule. `chunk_bytes` is the size of each mapping in a range. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"

/* The tier of a chunk: where its physical memory is. */
enum spw_tier { SPW_TIER_DEVICE, SPW_TIER_HOST, SPW_TIER_COUNT };

/* A stream, as the pool sees it. `id` is unique for the life of the process (cuStreamGetId). The
 * handle is for the backend; it may be reused after the stream was destroyed. `id` 0 stands for all
 * work submitted to the device so far, on any stream. */
struct spw_stream {
    uint64_t id;
    void *handle;
    void *context;     /* the context of the stream, for the backend */
    bool thread_bound; /* the handle means this stream only on the calling thread */
};

enum { SPW_STREAM_ALL = 0 };

/* One copy of a batch. */
struct spw_vm_copy {
    uint64_t to, from, bytes;
};

/* Page-locked memory of the host. */
struct spw_vm_pinned {
    uint64_t address; /* the address that the device uses */
    uint64_t memory;  /* the backend's handle */
    void *context;    /* the driver frees the memory with this context; NULL: unknown */
    bool lasting;     /* the context is likely to outlive the others */
};

/* A device, as the pool uses it. This is the first member of the struct that implements it. */
struct spw_vm {
    const struct spw_vm_ops *ops;
};

struct spw_vm_ops {
    /* Reserve and release address space, without backing. */
    enum spw_err (*reserve)(struct spw_vm *vm, uint64_t bytes, uint64_t *ret_address);
    void (*unreserve)(struct spw_vm *vm, uint64_t address, uint64_t bytes);

    /* Returns how many bytes of the device may be created now. Called if the pool is `bounded`. */
    uint64_t (*room)(struct spw_vm *vm);
    /* Create and release one chunk. Return NO_MEMORY if the tier is full. */
    enum spw_err (*create)(struct spw_vm *vm, enum spw_tier tier, uint64_t bytes,
                           uint64_t *ret_chunk);
    enum spw_err (*release)(struct spw_vm *vm, uint64_t chunk);
    /* Creates a chunk of the device that can be exported to other processes. If that is not
     * possible, returns UNSUPPORTED or the driver's error. */
    enum spw_err (*create_exportable)(struct spw_vm *vm, uint64_t bytes, uint64_t *ret_chunk);

    /* map maps a whole chunk, without access. set_access applies the device's current access list
     * to a range of one or more whole mappings; no device has access to them yet. share applies
     * only the last change of the list, to mappings that may be in use. */
    enum spw_err (*map)(struct spw_vm *vm, uint64_t address, uint64_t bytes, uint64_t chunk);
    enum spw_err (*set_access)(struct spw_vm *vm, uint64_t address, uint64_t bytes,
                               uint64_t chunk_bytes);
    enum spw_err (*share)(struct spw_vm *vm, uint64_t address, uint64_t bytes,
                          uint64_t chunk_bytes);
    /* Unmaps a range of whole mappings at once, without waiting for the device. The pool calls it
     * only when all device work that may use the range is complete. On failure, *ret_done is the
     * number of bytes from the start that were unmapped. */
    enum spw_err (*unmap)(struct spw_vm *vm, uint64_t address, uint64_t bytes, uint64_t chunk_bytes,
                          uint64_t *ret_done);

    /* Records a new fence, which completes when all work submitted to `stream` so far has
     * completed. Returns AGAIN if no fence can be recorded now (a capture is open). The pool gives
     * the fence back with drop. */
    enum spw_err (*fence)(struct spw_vm *vm, const struct spw_stream *stream, void **ret_fence);
    /* Returns OK if the fence is complete. Returns AGAIN if it is not, or if no query is allowed
     * now. Never waits. */
    enum spw_err (*query)(struct spw_vm *vm, void *fence);
    /* Waits on the calling thread until the fence completes. Returns AGAIN if no wait is allowed
     * now. */
    enum spw_err (*wait_host)(struct spw_vm *vm, void *fence);
    /* Like wait_host, but waits only up to the backend's limit and then returns AGAIN. */
    enum spw_err (*wait_soon)(struct spw_vm *vm, void *fence);
    /* Makes later work of `stream` wait for the fence. Does not wait on the calling thread. */
    enum spw_err (*wait_stream)(struct spw_vm *vm, const struct spw_stream *stream, void *fence);
    void (*drop)(struct spw_vm *vm, void *fence);
    /* Returns true if a fence of SPW_STREAM_ALL completes only in wait_host or wait_soon. These
     * then wait for the whole device, without a time limit. */
    bool (*defers)(struct spw_vm *vm);

    /* Finds a place for chunks of the host, for probe_host. May take seconds. Called without the
     * pool's lock, by one thread at a time. */
    void (*seek_host)(struct spw_vm *vm);
    /* Tests with a real chunk whether the device can use chunks on the host. Returns UNSUPPORTED if
     * it cannot. *ret_moves is true if `copy` can also be used. Called after seek_host, and before
     * the first chunk of the host is created. */
    enum spw_err (*probe_host)(struct spw_vm *vm, bool *ret_moves);
    /* For devices that cannot map chunks of host memory. pin allocates page-locked memory that the
     * device can use, at an address that the backend chooses. Returns NO_MEMORY if there is none.
     * The driver frees the memory together with a lasting context; if there is none, together with
     * `context` (NULL: any). unpin releases the memory. Returns AGAIN while the device is busy or
     * the driver forbids the call. */
    enum spw_err (*pin)(struct spw_vm *vm, void *context, uint64_t bytes,
                        struct spw_vm_pinned *ret_pinned);
    enum spw_err (*unpin)(struct spw_vm *vm, uint64_t memory);
    /* Tests with a copy whether the device can use page-locked memory. */
    enum spw_err (*probe_pinned)(struct spw_vm *vm, uint64_t address, uint64_t bytes);
    /* Enqueues copies to a tier on the backend's stream for that tier. With `after_all`, they run
     * after all work submitted to the device so far. *ret_fence completes with the last copy.
     * Returns AGAIN if no copy is possible now. On failure, *ret_fence is not NULL if some copies
     * were enqueued. */
    enum spw_err (*copy)(struct spw_vm *vm, enum spw_tier to, const struct spw_vm_copy *copies,
                         size_t count, bool after_all, void **ret_fence);
    /* Copy between a range and the process's memory, and wait until the copy is done. After an
     * error the copy may still be in progress, so the process's memory must stay allocated. */
    enum spw_err (*read)(struct spw_vm *vm, void *to, uint64_t address, uint64_t bytes);
    enum spw_err (*write)(struct spw_vm *vm, uint64_t address, const void *from, uint64_t bytes);
    /* Hashes the content of a range. The hash is 0 if the device has no content, as some simulated
     * devices. Waits until earlier work is done. */
    enum spw_err (*hash)(struct spw_vm *vm, uint64_t address, uint64_t bytes, uint64_t *ret_hash);
};
