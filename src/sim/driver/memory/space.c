#include "sim/driver/memory/space.h"

#include <stdlib.h>
#include <sys/mman.h>

#include "sim/driver/core/device.h"
#include "sim/driver/core/sim_options.h"

/* Beyond the 47 address bits of a process, within the 49 of a GPU. */
#define UNREAL_FIRST (UINT64_C(1) << 48)

static struct sim_rangemap reservations;
static uint64_t unreal_next = UNREAL_FIRST;
static uint64_t file_next;
static size_t real_bytes;

static uint64_t round_up(uint64_t value, uint64_t unit)
{
    return (value + unit - 1) & ~(unit - 1);
}

/* Reserves exactly the range at the hint, if it is free. */
static uint64_t reserve_at(uint64_t hint, size_t size, size_t alignment)
{
    void *address;

    if (hint == 0 || (hint & (alignment - 1)) != 0) {
        return 0;
    }
    address = mmap((void *)(uintptr_t)hint, size, PROT_NONE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    if (address == MAP_FAILED) {
        return 0;
    }
    if ((uintptr_t)address != hint) {
        munmap(address, size);
        return 0;
    }
    return hint;
}

/* Reserves a range anywhere. Reserves more than needed, and releases the bytes around the aligned
 * range. */
static uint64_t reserve_anywhere(size_t size, size_t alignment)
{
    size_t total = size + alignment;
    void *address;
    uint64_t start, first, end;

    if (total < size) {
        return 0;
    }
    address = mmap(NULL, total, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (address == MAP_FAILED) {
        return 0;
    }
    first = (uintptr_t)address;
    start = round_up(first, alignment);
    end = start + size;
    if (start > first) {
        munmap(address, (size_t)(start - first));
    }
    if (first + total > end) {
        munmap((void *)(uintptr_t)end, (size_t)(first + total - end));
    }
    return start;
}

static uint64_t reserve_real(size_t size, size_t alignment, uint64_t hint)
{
    size_t limit = sim_options()->va_max_bytes;
    uint64_t start;

    if (limit != 0 && size > limit - (real_bytes < limit ? real_bytes : limit)) {
        return 0;
    }
    start = reserve_at(hint, size, alignment);
    return start != 0 ? start : reserve_anywhere(size, alignment);
}

struct sim_reservation *sim_space_reserve(size_t size, size_t alignment, uint64_t hint,
                                          bool internal)
{
    struct sim_reservation *reservation = calloc(1, sizeof(*reservation));
    uint64_t start;

    if (reservation == NULL) {
        return NULL;
    }
    start = reserve_real(size, alignment, hint);
    reservation->real = start != 0;
    if (reservation->real) {
        real_bytes += size;
    } else {
        start = round_up(unreal_next, alignment);
        unreal_next = start + round_up(size, SIM_GRANULE);
    }
    reservation->range.start = start;
    reservation->range.size = size;
    reservation->internal = internal;
    reservation->file_base = file_next;
    file_next += round_up(size, SIM_GRANULE);
    sim_rangemap_insert(&reservations, &reservation->range);
    return reservation;
}

void sim_space_free(struct sim_reservation *reservation)
{
    if (reservation->real) {
        munmap((void *)(uintptr_t)reservation->range.start, (size_t)reservation->range.size);
        real_bytes -= (size_t)reservation->range.size;
    }
    sim_rangemap_remove(&reservations, &reservation->range);
    free(reservation);
}

struct sim_reservation *sim_space_find(uint64_t address)
{
    return (struct sim_reservation *)sim_rangemap_find(&reservations, address);
}

uint64_t sim_space_offset(const struct sim_reservation *reservation, uint64_t address)
{
    return reservation->file_base + (address - reservation->range.start);
}
