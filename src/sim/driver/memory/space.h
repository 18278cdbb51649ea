/* The device address space: reservations.
 *
 * A reservation is address space of the process taken with mmap(PROT_NONE), so that nothing else
 * can be there and every touch faults. Where the system refuses (valgrind, TSan and RLIMIT_AS limit
 * address space; SPILLWAY_SIM_VA_MAX does on request), the addresses are made up above what a
 * process can have: everything works but access by the process itself, which faults in any case.
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
    uint64_t file_base;     /* backing offset of its first byte, so that neighbours in the one are
                             * neighbours in the other and their kernel mappings merge */
    bool real;              /* mmap'ed */
    bool internal;          /* the driver's own, for cuMemAlloc and pools: not cuMemAddressFree's */
    struct sim_heap *arena; /* internal: the addresses not in use */
    size_t mappings;        /* live mappings inside */
};

/* Reserves `size` bytes (a multiple of the page size) at a multiple of `alignment` (a power of
 * two), at `hint` if that is possible. NULL if host memory is out. */
struct sim_reservation *sim_space_reserve(size_t size, size_t alignment, uint64_t hint,
                                          bool internal);

/* Ends a reservation in which nothing is mapped. */
void sim_space_free(struct sim_reservation *reservation);

/* The reservation that contains the address, or NULL. */
struct sim_reservation *sim_space_find(uint64_t address);

/* The backing offset that belongs to an address of the reservation. */
uint64_t sim_space_offset(const struct sim_reservation *reservation, uint64_t address);
