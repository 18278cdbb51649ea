#include "submit/parts.h"

#include "device/lease.h"
#include "device/lookup.h"
#include "program/mappings.h"
#include "program/users.h"

/* The bytes from `address` on that are in one tier: of a block, or of the program's own memory. */
static uint64_t run_of_tier(uint64_t address, uint64_t most)
{
    struct spw_pool *pool;

    return spw_device_owner(address, &pool) != NULL ? spw_pool_run(pool, address, most)
                                                    : spw_program_mappings_run(address, most);
}

void spw_submit_parts_box(struct spw_parts *ret_parts, struct spw_cut_box box)
{
    ret_parts->to = box.to.address;
    ret_parts->from = box.from.address;
    ret_parts->is_peer = false;
    if (spw_process_settings()->whole_copies) {
        box.to.address = box.from.address = 0;
    }
    spw_submit_cut_begin(&ret_parts->cut, &box);
}

void spw_submit_parts_copy(struct spw_parts *ret_parts, uint64_t to, uint64_t from, size_t bytes)
{
    spw_submit_parts_box(ret_parts, (struct spw_cut_box){.to = {.address = to},
                                                         .from = {.address = from},
                                                         .unit = 1,
                                                         .width = bytes,
                                                         .height = 1,
                                                         .depth = 1});
}

void spw_submit_parts_fill(struct spw_parts *ret_parts, uint64_t to, size_t pitch, size_t unit,
                           size_t width, size_t height)
{
    spw_submit_parts_box(ret_parts, (struct spw_cut_box){.to = {.address = to, .pitch = pitch},
                                                         .unit = unit,
                                                         .width = width,
                                                         .height = height,
                                                         .depth = 1});
}

void spw_submit_parts_note(const struct spw_parts *parts, CUstream stream, bool per_thread)
{
    const uint64_t ends[] = {parts->to, parts->from};

    spw_program_users_note(ends, 2, stream, per_thread);
}

void spw_submit_parts_find_peer(struct spw_parts *parts, CUstream stream, bool per_thread)
{
    spw_device_lease_enter();
    parts->is_peer =
        spw_program_peer_find(parts->to, parts->from, stream, per_thread, &parts->peer);
    spw_device_lease_leave();
}

bool spw_submit_parts_next(struct spw_parts *parts, CUresult result)
{
    bool found;

    if (result != CUDA_SUCCESS) {
        return false;
    }
    spw_device_lease_enter();
    found = spw_submit_cut_next(&parts->cut, run_of_tier);
    spw_device_lease_leave();
    return found;
}
