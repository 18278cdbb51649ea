/* The content of simulated memory: one huge sparse memfd per device and host node.
 *
 * Nothing is committed until it is written: untouched memory reads as zeros from a hole, and
 * freeing or zeroing punches a hole again. Content is read by pread and written through windows,
 * mappings of pieces of the file, so it does not matter whether the chunk is mapped in the process;
 * where no window can be mapped, by pwrite.
 *
 * Locking: the simulator's lock (core/lock.h) is held. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/driver/core/rangemap.h"
#include "sim/driver/memory/known.h"

struct sim_backing;

/* A range of a backing: the content of one chunk. */
struct sim_extent {
    struct sim_range range; /* offset and size in the file; size 0: not placed yet */
    struct sim_backing *backing;
    bool touched; /* something may have been written since it was placed */
    struct sim_known known;
};

/* The backing of a device or of a host NUMA node, made at the first use; NULL if the system refuses
 * to make it. */
struct sim_backing *sim_backing_of_device(int ordinal);
struct sim_backing *sim_backing_of_host(int node);

/* Host memory that the content of all backings takes. */
uint64_t sim_backing_bytes(void);

#define SIM_EXTENT_ANYWHERE UINT64_MAX

/* Places an extent: at `wanted` if nothing is there, else at an offset never used before. */
void sim_extent_place(struct sim_extent *extent, struct sim_backing *backing, uint64_t wanted,
                      uint64_t size);

/* Moves the extent with its content into a file of its own, so that the file can be handed to
 * another process. False if the system refuses; nothing has changed then. */
bool sim_extent_isolate(struct sim_extent *extent, const void *label, size_t label_size);

/* Makes the extent the whole of such a file, made by this or another process, and reads its label;
 * `fd` stays the caller's. False if it is no such file. */
bool sim_extent_adopt(struct sim_extent *extent, int fd, void *ret_label, size_t label_size);

/* A new descriptor of an isolated extent's file, or -1. The second is true if `fd` is one. */
int sim_extent_export(const struct sim_extent *extent);
bool sim_extent_is_fd(const struct sim_extent *extent, int fd);

/* Gives up the range and its content. Harmless when it was never placed. */
void sim_extent_release(struct sim_extent *extent);

/* The descriptor to map the extent's range from. */
int sim_extent_fd(const struct sim_extent *extent);

/* Content, at `at` bytes into the extent. All ranges lie within it. Zeros in a large write stay
 * holes. */
void sim_extent_read(const struct sim_extent *extent, uint64_t at, void *dst, size_t size);
void sim_extent_write(struct sim_extent *extent, uint64_t at, const void *src, size_t size);
void sim_extent_zero(struct sim_extent *extent, uint64_t at, size_t size);

/* The first stretch of a range that is not a hole: how far it is and how long. False if the whole
 * range is one. */
bool sim_extent_data(const struct sim_extent *extent, uint64_t at, size_t size, size_t *ret_skip,
                     size_t *ret_size);

/* How much of a range is not a hole. */
uint64_t sim_extent_content(const struct sim_extent *extent, uint64_t at, size_t size);

/* Repeats a pattern of 1, 2 or 4 bytes; `size` is a multiple of `width`, `at` need not be. */
void sim_extent_fill(struct sim_extent *extent, uint64_t at, uint32_t pattern, unsigned int width,
                     size_t size);

/* Copies, leaving holes holes. Overlap within one extent is allowed as in memcpy only. */
void sim_extent_copy(struct sim_extent *dst, uint64_t dst_at, const struct sim_extent *src,
                     uint64_t src_at, size_t size);
