/* Copies and fills that the driver may not do in one part, or not as the program asked.
 *
 * A copy may cross from device memory to memory that spilled to the host, at the same addresses as
 * before. NVIDIA's documents do not define such a copy: the driver may choose the kind of copy by
 * the first byte. So it becomes several copies that do not cross. Boundaries do not move during the
 * call: memory moves only while no call is inside the submit barrier (migrate/move/barrier.h), and
 * the caller is inside.
 *
 * A copy between two devices reaches memory of cuMemCreate, which blocks are made of, only with an
 * access right, unless it is a peer copy (llama.cpp#4620; PyTorch's allocators make the same
 * choice). So the copy becomes a peer copy if the right is missing.
 *
 * An error of a later part becomes the call's error, although earlier parts are enqueued. If the
 * program repeats the call, it does these parts again, which changes nothing.
 *
 * Locking: takes the locks of the pools and of the program's own memory. Any thread, inside the
 * submit barrier. */
#pragma once

#include "device/state.h"
#include "program/peer.h"
#include "submit/cut.h"

struct spw_parts {
    struct spw_cut cut; /* cut.part: the part at hand */
    CUdeviceptr to, from;
    bool is_peer; /* the copy must be a peer copy */
    struct spw_peer peer;
};

/* True when copies and fills have to be looked at: memory is on the host, or two devices are used.
 * No lock. */
static inline bool spw_submit_parts_wanted(void)
{
    return SPW_UNLIKELY(atomic_load_explicit(&spw_devices.looked_at, memory_order_relaxed) > 0);
}

/* Begins with a copy of bytes; 0 as an address: an array. */
void spw_submit_parts_copy(struct spw_parts *ret_parts, uint64_t to, uint64_t from, size_t bytes);

/* Begins with a fill of `height` rows of `width` elements of `unit` bytes. */
void spw_submit_parts_fill(struct spw_parts *ret_parts, uint64_t to, size_t pitch, size_t unit,
                           size_t width, size_t height);

/* Begins with a copy of rows or of a volume (rows.h). */
void spw_submit_parts_box(struct spw_parts *ret_parts, struct spw_cut_box box);

/* Reports to the pools that a copy or fill on this stream uses their memory. To be called after one
 * of the functions above, and before the first part. */
void spw_submit_parts_note(const struct spw_parts *parts, CUstream stream, bool per_thread);

/* Finds out if a copy must be a peer copy. To be called after a function above, not for a peer
 * copy. */
void spw_submit_parts_find_peer(struct spw_parts *parts, CUstream stream, bool per_thread);

/* Finds the next part. `result` is the driver's answer to the previous part. False after the last
 * part, and after an error. */
bool spw_submit_parts_next(struct spw_parts *parts, CUresult result);

/* The offset of the part in a copy of bytes. */
static inline size_t spw_submit_parts_at(const struct spw_parts *parts)
{
    return parts->cut.part.x;
}

/* The first element of the part of a fill of `to`. */
static inline CUdeviceptr spw_submit_parts_element(const struct spw_parts *parts, CUdeviceptr to)
{
    const struct spw_cut_box *box = &parts->cut.box;
    const struct spw_cut_part *part = &parts->cut.part;

    return to + part->y * box->to.pitch + part->x * box->unit;
}

/* The bytes, or elements, of the part in a row. */
static inline size_t spw_submit_parts_count(const struct spw_parts *parts)
{
    return parts->cut.part.width;
}
