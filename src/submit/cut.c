#include "submit/cut.h"

#include "common/minmax.h"

/* Sets *ret_bytes to (count - 1) * step + last. False when it overflows. */
static bool span(size_t count, size_t step, size_t last, size_t *ret_bytes)
{
    size_t before;

    return !__builtin_mul_overflow(count - 1, step, &before) &&
           !__builtin_add_overflow(before, last, ret_bytes);
}

/* True when the last byte of a side has an address. */
static bool fits(const struct spw_cut_side *side, const struct spw_cut_box *box)
{
    size_t bytes;
    uint64_t end;

    return !__builtin_mul_overflow(box->width, box->unit, &bytes) &&
           span(box->height, box->height > 1 ? side->pitch : 0, bytes, &bytes) &&
           span(box->depth, box->depth > 1 ? side->slice : 0, bytes, &bytes) &&
           !__builtin_add_overflow(side->address, bytes, &end);
}

static bool is_empty(const struct spw_cut_box *box)
{
    return box->width == 0 || box->height == 0 || box->depth == 0;
}

void spw_submit_cut_begin(struct spw_cut *ret_cut, const struct spw_cut_box *box)
{
    *ret_cut = (struct spw_cut){.box = *box};
    if (is_empty(box) || !fits(&box->to, box)) {
        ret_cut->box.to.address = 0;
    }
    if (is_empty(box) || !fits(&box->from, box)) {
        ret_cut->box.from.address = 0;
    }
}

/* How many of `count` spans of `bytes`, `step` bytes apart, are in the first `run` bytes. */
static size_t count_in(uint64_t run, size_t bytes, size_t step, size_t count)
{
    if (run < bytes) {
        return 0;
    }
    if (step == 0 || (run - bytes) / step >= count - 1) {
        return count;
    }
    return (size_t)((run - bytes) / step) + 1;
}

/* The extent of memory of one kind, from the beginning of a part, on all sides of the copy: units
 * of the row, whole rows of the slice, and whole slices. */
struct room {
    size_t units, rows, slices;
};

static void narrow(struct room *room, const struct spw_cut *cut, const struct spw_cut_side *side,
                   spw_cut_run *run)
{
    const struct spw_cut_box *box = &cut->box;
    const struct spw_cut_part *at = &cut->part;
    size_t pitch = box->height > 1 ? side->pitch : 0, step = box->depth > 1 ? side->slice : 0;
    size_t rows = at->x > 0 ? 1 : box->height - at->y;
    size_t slices = at->x > 0 || at->y > 0 ? 1 : box->depth - at->z;
    size_t row = (box->width - at->x) * box->unit, slice = (rows - 1) * pitch + row;
    uint64_t bytes;

    if (side->address == 0) {
        return;
    }
    bytes = run(side->address + at->z * step + at->y * pitch + at->x * box->unit,
                (slices - 1) * step + slice);
    room->units = spw_min(room->units, bytes < row ? (size_t)bytes / box->unit : room->units);
    room->rows = spw_min(room->rows, count_in(bytes, row, pitch, rows));
    room->slices = spw_min(room->slices, count_in(bytes, slice, step, slices));
}

/* Goes to the beginning of the next part. False at the end of the box. */
static bool go_on(struct spw_cut *cut)
{
    const struct spw_cut_box *box = &cut->box;
    struct spw_cut_part *at = &cut->part;

    if (at->width < box->width) {
        at->x += at->width;
        if (at->x < box->width) {
            return true;
        }
        at->x = 0;
        at->y++;
    } else {
        at->y += at->height;
    }
    if (at->y == box->height) {
        at->y = 0;
        at->z += at->depth;
    }
    return at->z < box->depth;
}

static void set_extent(struct spw_cut_part *part, size_t width, size_t height, size_t depth)
{
    part->width = width;
    part->height = height;
    part->depth = depth;
}

bool spw_submit_cut_next(struct spw_cut *cut, spw_cut_run *run)
{
    const struct spw_cut_box *box = &cut->box;
    struct spw_cut_part *at = &cut->part;
    struct room room;

    if (cut->begun && (is_empty(box) || !go_on(cut))) {
        return false;
    }
    cut->begun = true;
    if (is_empty(box)) {
        set_extent(at, box->width, box->height, box->depth);
        return true;
    }
    room = (struct room){box->width - at->x, box->height - at->y, box->depth - at->z};
    narrow(&room, cut, &box->to, run);
    narrow(&room, cut, &box->from, run);
    if (at->x == 0 && at->y == 0 && room.slices > 0) {
        set_extent(at, box->width, box->height, room.slices);
    } else if (at->x == 0 && room.rows > 0) {
        set_extent(at, box->width, room.rows, 1);
    } else {
        set_extent(at, room.units > 0 ? room.units : 1, 1, 1);
    }
    return true;
}
