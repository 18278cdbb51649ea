/* Mappings of chunks at addresses, and the devices that may access them.
 *
 * The table of mappings is authoritative. The kernel's mappings follow the table where possible. If
 * the host or a device may access a mapping, the mapping is mmap'ed into the process, so that
 * tests, and programs with host-located chunks, can access it. A mapping without access is as
 * unreachable as unmapped space, and is not mmap'ed. Adjacent mappings merge in the kernel because
 * their file offsets are also adjacent. Near the kernel's limit on the number of mappings, new
 * mappings are not mmap'ed, and a mapping is not unmapped where the hole would split a kernel
 * mapping. Such changes exist only in the table, and one warning is printed.
 *
 * Locking: the simulator's lock (core/lock.h) is held. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cuda.h>

#include "sim/driver/core/rangemap.h"
#include "sim/driver/memory/chunk.h"
#include "sim/driver/memory/space.h"

enum sim_mapping_kind {
    SIM_MAPPING_USER,  /* cuMemMap */
    SIM_MAPPING_ALLOC, /* cuMemAlloc and the driver's own memory: cuCtxEnablePeerAccess gives peers
                        * access */
    SIM_MAPPING_POOL,  /* a segment of a memory pool */
};

struct sim_mapping {
    struct sim_range range;
    enum sim_mapping_kind kind;
    struct sim_reservation *reservation;
    struct sim_chunk *chunk;
    struct sim_mapping *next; /* of the chunk */
    uint64_t readers;         /* bit per device ordinal */
    uint64_t writers;
    int host_prot; /* PROT_ bits that cuMemSetAccess gave the host */
    int prot;      /* PROT_ bits of the kernel mapping, 0: there is none */
};

/* Maps the whole chunk at an address. The range must lie in the reservation and be free. Neither
 * the host nor a device has access to the new mapping. CUDA_ERROR_OUT_OF_MEMORY. */
CUresult sim_mapping_create(struct sim_reservation *reservation, uint64_t address,
                            struct sim_chunk *chunk, enum sim_mapping_kind kind,
                            struct sim_mapping **ret_mapping);

/* Unmaps all mappings in [start, end); no mapping may extend beyond that range. Frees chunks that
 * have no reference left. */
void sim_mapping_remove(uint64_t start, uint64_t end);

/* sim_mapping_find(): the mapping that contains the address, or NULL. sim_mapping_from(): the
 * mapping that contains the address or, if none does, the next mapping above. sim_mapping_next():
 * the following mapping. */
struct sim_mapping *sim_mapping_find(uint64_t address);
struct sim_mapping *sim_mapping_from(uint64_t address);
struct sim_mapping *sim_mapping_next(const struct sim_mapping *mapping);

/* True if whole mappings cover exactly [start, end). */
bool sim_mapping_fills(uint64_t start, uint64_t end);

/* Makes the kernel's mappings of [start, end) agree with the access in the table. */
void sim_mapping_apply(uint64_t start, uint64_t end);

/* A descriptor of the chunk for another process, or -1. The first export moves the content to a
 * file of the chunk's own, and remaps the kernel's mappings of the chunk to this file. */
int sim_mapping_export(struct sim_chunk *chunk);

/* True if kernels on `device` may read the mapping, or with `write` may write it. */
bool sim_mapping_allows(const struct sim_mapping *mapping, const struct sim_device *device,
                        bool write);
