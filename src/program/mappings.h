/* The physical memory that the program creates itself (cuMemCreate), by handle and by the addresses
 * where it is mapped.
 *
 * Locking: spw_locks.mappings; nothing is called with it held. The table owns its pieces. A caller
 * that removes the last reference or mapping of a piece becomes the owner of the piece, and frees
 * it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "driver/cuda_api.h"

/* The memory of one cuMemCreate call. The table changes only the last three members. */
struct spw_piece {
    uint64_t bytes;
    int ordinal; /* device that the piece is charged to; for host memory of the program, the device
                    that counts it */
    bool host;   /* the program asked for host memory */
    bool suits_host;     /* may be on the host, by its properties and its caller */
    bool redirects;      /* is placed on the host when the device is full */
    bool spilled;        /* is on the host, although the program asked for device memory */
    bool tallied_host;   /* counted as host memory in the tally of its rule */
    uint8_t rule;        /* policy rule that decided on it; 0: none */
    uint32_t site;       /* call site that is charged for it */
    unsigned references; /* handles that are not released yet */
    unsigned releases;   /* releases whose result from the driver is still missing */
    unsigned mappings;
};

/* Enters a piece. Returns false if there is no memory, or if the handle is already in the table. */
bool spw_program_mappings_add(CUmemGenericAllocationHandle handle, struct spw_piece *piece);

/* Gives up one reference of a handle. Must be called before the real call, because that call may
 * let the driver give the same handle to another thread. Returns NULL if the handle is unknown. The
 * piece stays valid until the matching spw_program_mappings_release_end. */
struct spw_piece *spw_program_mappings_release_begin(CUmemGenericAllocationHandle handle);

/* Ends the release with the driver's result. If the driver refused, restores the reference. Returns
 * true if the piece is now unused. */
bool spw_program_mappings_release_end(CUmemGenericAllocationHandle handle, struct spw_piece *piece,
                                      bool released);

/* Records that the driver has mapped a handle at an address. */
void spw_program_mappings_map(CUmemGenericAllocationHandle handle, uint64_t address,
                              uint64_t bytes);

/* Removes the mapping at an address. *ret_bytes is its size; 0 if there was none. Returns its piece
 * if the piece is now unused; otherwise NULL. */
struct spw_piece *spw_program_mappings_unmap(uint64_t address, uint64_t *ret_bytes);

/* Adds a reference, because the driver returned a handle of the memory that is mapped at an
 * address. The address may be inside the mapping. */
void spw_program_mappings_retain(CUmemGenericAllocationHandle handle, uint64_t address);

/* Returns the length of a run that begins at `address`, at most `most` bytes. Either all of the run
 * is in spilled pieces, or none of it is. */
uint64_t spw_program_mappings_run(uint64_t address, uint64_t most);

/* If the address is in a spilled piece, returns the device that the program asked for. Otherwise
 * returns -1. */
int spw_program_mappings_spilled_from(uint64_t address);

/* In a child after fork: empties the tables. */
void spw_program_mappings_reset(void);
