/* The content of simulated memory: one huge sparse memfd per device and host node.
 *
 * Host memory is committed at the first write. Untouched memory is a hole in the file and reads as
 * zeros. Freeing or zeroing memory punches a hole again. Content is read with pread. It is written
 * through windows, which are mappings of pieces of the file, or with pwrite if no window can be
 * mapped. Reading and writing therefore also work for chunks that are not mapped in the process.
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
    bool touched; /* the content may have been written since the extent was placed */
    struct sim_known known;
};

/* The backing of a device or of a host NUMA node, made at the first use; NULL if the system refuses
 * to make it. */
struct sim_backing *sim_backing_of_device(int ordinal);
struct sim_backing *sim_backing_of_host(int node);

/* Host memory that the content of all backings takes. */
uint64_t sim_backing_bytes(void);

#define SIM_EXTENT_ANYWHERE UINT64_MAX

/* Places an extent: at `wanted` if that range is free, otherwise at an offset that was never used.
 */
void sim_extent_place(struct sim_extent *extent, struct sim_backing *backing, uint64_t wanted,
                      uint64_t size);

/* Moves the extent with its content into a file of its own, so that the file can be passed to
 * another process. Returns false and changes nothing if the system refuses. */
bool sim_extent_isolate(struct sim_extent *extent, const void *label, size_t label_size);

/* Makes the extent cover the whole content of an isolated file of this or another process, and
 * reads the file's label. The caller keeps `fd`. False if `fd` is not an isolated file. */
bool sim_extent_adopt(struct sim_extent *extent, int fd, void *ret_label, size_t label_size);

/* A new descriptor of an isolated extent's file, or -1. sim_extent_is_fd(): true if `fd` is a
 * descriptor of that file. */
int sim_extent_export(const struct sim_extent *extent);
bool sim_extent_is_fd(const struct sim_extent *extent, int fd);

/* Frees the range and its content. Does nothing if the extent was never placed. */
void sim_extent_release(struct sim_extent *extent);

/* The descriptor to map the extent's range from. */
int sim_extent_fd(const struct sim_extent *extent);

/* Read, write or zero content, `at` bytes into the extent. All ranges lie within the extent. Zeros
 * in a large write become holes. */
void sim_extent_read(const struct sim_extent *extent, uint64_t at, void *dst, size_t size);
void sim_extent_write(struct sim_extent *extent, uint64_t at, const void *src, size_t size);
void sim_extent_zero(struct sim_extent *extent, uint64_t at, size_t size);

/* Finds the first stretch of data in a range, and returns its distance from `at` and its size.
 * False if the whole range is a hole. */
bool sim_extent_data(const struct sim_extent *extent, uint64_t at, size_t size, size_t *ret_skip,
                     size_t *ret_size);

/* Bytes of data in a range, without holes. */
uint64_t sim_extent_content(const struct sim_extent *extent, uint64_t at, size_t size);

/* Repeats a pattern of 1, 2 or 4 bytes; `size` is a multiple of `width`, `at` need not be. */
void sim_extent_fill(struct sim_extent *extent, uint64_t at, uint32_t pattern, unsigned int width,
                     size_t size);

/* Copies; holes of the source become holes of the destination. As with memcpy(), the ranges must
 * not overlap. */
void sim_extent_copy(struct sim_extent *dst, uint64_t dst_at, const struct sim_extent *src,
                     uint64_t src_at, size_t size);
