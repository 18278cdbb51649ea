#include "program/mappings.h"

#include "device/state.h"
#include "program/state.h"
#include "system/lock.h"

#include <stdlib.h>

/* One address range where a piece is mapped. */
struct mapping {
    struct spw_piece *piece;
    uint64_t address;
    uint64_t bytes;
};

bool spw_program_mappings_add(CUmemGenericAllocationHandle handle, struct spw_piece *piece)
{
    bool done;

    spw_lock(&spw_locks.mappings);
    done = spw_map_get(&spw_program.mappings.pieces, handle) == NULL &&
           spw_map_put(&spw_program.mappings.pieces, handle, piece);
    spw_unlock(&spw_locks.mappings);
    return done;
}

static bool is_unused(const struct spw_piece *piece)
{
    return piece->references == 0 && piece->releases == 0 && piece->mappings == 0;
}

struct spw_piece *spw_program_mappings_release_begin(CUmemGenericAllocationHandle handle)
{
    struct spw_piece *piece;

    spw_lock(&spw_locks.mappings);
    piece = spw_map_get(&spw_program.mappings.pieces, handle);
    if (piece != NULL) {
        piece->releases++;
        if (--piece->references == 0) {
            (void)spw_map_take(&spw_program.mappings.pieces, handle);
        }
    }
    spw_unlock(&spw_locks.mappings);
    return piece;
}

bool spw_program_mappings_release_end(CUmemGenericAllocationHandle handle, struct spw_piece *piece,
                                      bool released)
{
    bool unused;

    spw_lock(&spw_locks.mappings);
    piece->releases--;
    if (!released && spw_map_put(&spw_program.mappings.pieces, handle, piece)) {
        piece->references++;
    }
    unused = is_unused(piece);
    spw_unlock(&spw_locks.mappings);
    return unused;
}

/* Enters a range where a spilled piece is mapped; or, with `bytes` 0, removes the range at
 * `address`. Without memory for the entry, copies of the range are not cut. Caller holds the
 * lock. */
static void set_spilled(uint64_t address, uint64_t bytes)
{
    struct spw_mappings *mappings = &spw_program.mappings;
    size_t before = mappings->spilled.count;
    struct spw_span span;

    if (bytes > 0) {
        (void)spw_program_spans_add(&mappings->spilled, address, bytes);
    } else {
        (void)spw_program_spans_take(&mappings->spilled, address, &span);
    }
    atomic_store(&mappings->spilled_count, mappings->spilled.count);
    if (!spw_process_settings()->whole_copies) {
        atomic_fetch_add(&spw_devices.looked_at, mappings->spilled.count - before);
    }
}

void spw_program_mappings_map(CUmemGenericAllocationHandle handle, uint64_t address, uint64_t bytes)
{
    struct mapping *mapping = malloc(sizeof(*mapping));

    spw_lock(&spw_locks.mappings);
    if (mapping != NULL) {
        *mapping =
            (struct mapping){spw_map_get(&spw_program.mappings.pieces, handle), address, bytes};
        if (mapping->piece != NULL &&
            spw_map_put(&spw_program.mappings.mappings, address, mapping)) {
            mapping->piece->mappings++;
            if (mapping->piece->spilled) {
                set_spilled(address, bytes);
            }
            mapping = NULL;
        }
    }
    spw_unlock(&spw_locks.mappings);
    free(mapping);
}

struct spw_piece *spw_program_mappings_unmap(uint64_t address, uint64_t *ret_bytes)
{
    struct spw_piece *gone = NULL;
    struct mapping *mapping;

    spw_lock(&spw_locks.mappings);
    mapping = spw_map_take(&spw_program.mappings.mappings, address);
    if (mapping != NULL && mapping->piece->spilled) {
        set_spilled(address, /* bytes */ 0);
    }
    if (mapping != NULL) {
        mapping->piece->mappings--;
        gone = is_unused(mapping->piece) ? mapping->piece : NULL;
    }
    spw_unlock(&spw_locks.mappings);
    *ret_bytes = mapping == NULL ? 0 : mapping->bytes;
    free(mapping);
    return gone;
}

/* The piece whose mapping contains an address. Caller holds the lock. */
static struct spw_piece *piece_at(uint64_t address)
{
    const struct mapping *mapping;
    size_t cursor = 0;

    while ((mapping = spw_map_next(&spw_program.mappings.mappings, &cursor)) != NULL) {
        if (address - mapping->address < mapping->bytes) {
            return mapping->piece;
        }
    }
    return NULL;
}

void spw_program_mappings_retain(CUmemGenericAllocationHandle handle, uint64_t address)
{
    struct spw_piece *piece;

    spw_lock(&spw_locks.mappings);
    piece = piece_at(address);
    if (piece != NULL && spw_map_put(&spw_program.mappings.pieces, handle, piece)) {
        piece->references++;
    }
    spw_unlock(&spw_locks.mappings);
}

int spw_program_mappings_spilled_from(uint64_t address)
{
    const struct spw_piece *piece;
    int ordinal;

    if (atomic_load_explicit(&spw_program.mappings.spilled_count, memory_order_relaxed) == 0) {
        return -1;
    }
    spw_lock(&spw_locks.mappings);
    piece = piece_at(address);
    ordinal = piece != NULL && piece->spilled ? piece->ordinal : -1;
    spw_unlock(&spw_locks.mappings);
    return ordinal;
}

uint64_t spw_program_mappings_run(uint64_t address, uint64_t most)
{
    uint64_t run = most, next;

    if (atomic_load_explicit(&spw_program.mappings.spilled_count, memory_order_relaxed) == 0) {
        return most;
    }
    spw_lock(&spw_locks.mappings);
    next = spw_program_spans_change(&spw_program.mappings.spilled, address);
    spw_unlock(&spw_locks.mappings);
    return next - address < run ? next - address : run;
}

void spw_program_mappings_reset(void)
{
    spw_lock(&spw_locks.mappings);
    atomic_fetch_sub(&spw_devices.looked_at,
                     spw_process_settings()->whole_copies ? 0 : spw_program.mappings.spilled.count);
    spw_program_spans_clear(&spw_program.mappings.spilled);
    atomic_store(&spw_program.mappings.spilled_count, 0);
    spw_map_clear(&spw_program.mappings.mappings);
    spw_map_clear(&spw_program.mappings.pieces);
    spw_unlock(&spw_locks.mappings);
}
