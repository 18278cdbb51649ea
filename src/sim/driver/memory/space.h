/* The device address space: reservations.
 *
 * A reservation is address space of the process, reserved with mmap(PROT_NONE). No other mapping
 * can use this address space, and every access faults. If the system refuses (valgrind, TSan,
 * RLIMIT_AS and SPILLWAY_SIM_VA_MAX limit address space), the reservation gets invented addresses
 * beyond the address space of a process. With such addresses, everything works except access by the
 * process itself, which always faults.
 *
 * Locking: the simulator's lock (core/lock.h) is held. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/driver/core/rangemap.h"

struct sim_heap;

struct sim_reservation {
    struct sim_range range;
    uint64_t file_base;     /* backing offset of the first byte; adjacent addresses have adjacent
                             * offsets, so that kernel mappings merge */
    bool real;              /* mmap'ed */
    bool internal;          /* for cuMemAlloc and pools; cuMemAddressFree refuses it */
    struct sim_heap *arena; /* internal: heap of the free addresses */
    size_t mappings;        /* live mappings inside */
};

/* Reserves `size` bytes (a multiple of the page size) at a multiple of `alignment` (a power of
 * two), at `hint` if possible. NULL if host memory is exhausted. */
struct sim_reservation *sim_space_reserve(size_t size, size_t alignment, uint64_t hint,
                                          bool internal);

/* Ends a reservation without mappings. */
void sim_space_free(struct sim_reservation *reservation);

/* The reservation that contains the address, or NULL. */
struct sim_reservation *sim_space_find(uint64_t address);

/* The backing offset that belongs to an address of the reservation. */
uint64_t sim_space_offset(const struct sim_reservation *reservation, uint64_t address);
