/* Cuts a copy or fill into parts. On each side, a part is in only one kind of memory.
 *
 * A box is the extent of a copy: `width` units of `unit` bytes in a row, `height` rows in a slice,
 * and `depth` slices. Its parts are whole slices, whole rows, or a piece of one row, in order. This
 * is geometry only, without a lock. The caller passes a function that knows the kinds of memory. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One side of a box: the address of its first byte, and the distance in bytes between rows and
 * between slices. A distance has no meaning if there is only one row or slice. Address 0: there is
 * no such side, or the side has no addresses. */
struct spw_cut_side {
    uint64_t address;
    size_t pitch;
    size_t slice;
};

struct spw_cut_box {
    struct spw_cut_side to, from;
    size_t unit, width, height, depth;
};

/* A part: its distance from the beginning of the box in units, rows and slices, and its extent. */
struct spw_cut_part {
    size_t x, y, z;
    size_t width, height, depth;
};

struct spw_cut {
    struct spw_cut_box box;
    struct spw_cut_part part;
    bool begun;
};

/* Returns how many bytes from `address` on, at most `most`, are in the same kind of memory. */
typedef uint64_t spw_cut_run(uint64_t address, uint64_t most);

/* Begins to cut a box. A side that ends beyond the last address is not examined. */
void spw_submit_cut_begin(struct spw_cut *ret_cut, const struct spw_cut_box *box);

/* Finds the next part. Returns false after the last part. An empty box is one part. */
bool spw_submit_cut_next(struct spw_cut *cut, spw_cut_run *run);

/* Returns true if the current part is the whole box. */
static inline bool spw_submit_cut_is_whole(const struct spw_cut *cut)
{
    return cut->part.width == cut->box.width && cut->part.height == cut->box.height &&
           cut->part.depth == cut->box.depth;
}
