/* Copies and fills that some drivers cannot do in one part, or in the way that the program
 * requested.
 *
 * A copy may cross from device memory to memory that spilled to the host at the same addresses.
 * NVIDIA's documents do not define such a copy: the driver may choose the kind of copy by the first
 * byte. The copy is therefore replaced by several copies that do not cross. The boundaries do not
 * change during the call. Memory moves only while no call is inside the submit barrier
 * (migrate/move/barrier.h), and the caller is inside.
 *
 * Blocks consist of memory of cuMemCreate. A copy between two devices can access such memory only
 * with an access right, unless it is a peer copy (llama.cpp#4620; PyTorch's allocators make the
 * same choice). If the right is missing, the copy becomes a peer copy.
 *
 * An error of a later part becomes the error of the call, although earlier parts are already
 * enqueued. If the program repeats the call, these parts are done again, which changes nothing.
 *
 * Locking: takes the locks of the pools and of the program's own memory. Any thread, inside the
 * submit barrier. */
#pragma once

#include "device/state.h"
#include "program/peer.h"
#include "submit/cut.h"

struct spw_parts {
    struct spw_cut cut; /* cut.part is the current part */
    CUdeviceptr to, from;
    bool is_peer; /* the copy must be a peer copy */
    struct spw_peer peer;
};

/* Returns true if copies and fills must be examined: memory is on the host, or two devices are
 * used. No lock. */
static inline bool spw_submit_parts_wanted(void)
{
    return SPW_UNLIKELY(atomic_load_explicit(&spw_devices.looked_at, memory_order_relaxed) > 0);
}

/* Begins a copy of `bytes`. An address of 0 stands for an array. */
void spw_submit_parts_copy(struct spw_parts *ret_parts, uint64_t to, uint64_t from, size_t bytes);

/* Begins a fill of `height` rows of `width` elements of `unit` bytes. */
void spw_submit_parts_fill(struct spw_parts *ret_parts, uint64_t to, size_t pitch, size_t unit,
                           size_t width, size_t height);

/* Begins a copy of rows or of a volume (rows.h). */
void spw_submit_parts_box(struct spw_parts *ret_parts, struct spw_cut_box box);

/* Reports to the pools that the copy or fill uses their memory on this stream. Must be called after
 * one of the functions above, and before the first part. */
void spw_submit_parts_note(const struct spw_parts *parts, CUstream stream, bool per_thread);

/* Finds out whether a copy must be a peer copy. Must be called after one of the functions above.
 * Not for a call that is already a peer copy. */
void spw_submit_parts_find_peer(struct spw_parts *parts, CUstream stream, bool per_thread);

/* Finds the next part. `result` is the driver's result of the previous part. Returns false after
 * the last part, and after an error. */
bool spw_submit_parts_next(struct spw_parts *parts, CUresult result);

/* Returns the offset of the current part in a copy of bytes. */
static inline size_t spw_submit_parts_at(const struct spw_parts *parts)
{
    return parts->cut.part.x;
}

/* Returns the address of the first element of the current part, in a fill of `to`. */
static inline CUdeviceptr spw_submit_parts_element(const struct spw_parts *parts, CUdeviceptr to)
{
    const struct spw_cut_box *box = &parts->cut.box;
    const struct spw_cut_part *part = &parts->cut.part;

    return to + part->y * box->to.pitch + part->x * box->unit;
}

/* Returns the number of bytes, or elements, in a row of the current part. */
static inline size_t spw_submit_parts_count(const struct spw_parts *parts)
{
    return parts->cut.part.width;
}
