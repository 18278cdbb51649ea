/* The program's own physical memory (cuMemCreate): by handle, and by the addresses that it is
 * mapped at.
 *
 * Locking: spw_locks.mappings; nothing is called with it held. The table owns the pieces in it; a
 * caller that removes the last reference or mapping of a piece gets the piece and frees it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "driver/cuda_api.h"

/* The memory of one cuMemCreate. The table changes only the last three members. */
struct spw_piece {
    uint64_t bytes;
    int ordinal;     /* device that the piece is charged to, or whose pinned memory it counts as */
    bool host;       /* the program asked for host memory */
    bool suits_host; /* may be on the host at all */
    bool redirects;  /* goes to the host when the device is full */
    bool spilled;    /* on the host, though the program asked for device memory */
    bool tallied_host;   /* counted as host memory in the tally of its rule */
    uint8_t rule;        /* policy rule that decided on it; 0: none */
    uint32_t site;       /* call site that is charged */
    unsigned references; /* handles not released yet */
    unsigned releases;   /* releases that the driver has not answered yet */
    unsigned mappings;
};

/* Enters a piece; false without memory, or when the handle is in the table already. */
bool spw_program_mappings_add(CUmemGenericAllocationHandle handle, struct spw_piece *piece);

/* Gives up one reference of a handle. Called before the real call, since that may let the driver
 * give the same handle to another thread. NULL when the handle is not known. The piece stays until
 * the matching spw_program_mappings_release_end. */
struct spw_piece *spw_program_mappings_release_begin(CUmemGenericAllocationHandle handle);

/* Ends the release after the driver's answer; if the driver refused, the reference comes back. True
 * when the piece is unused now. */
bool spw_program_mappings_release_end(CUmemGenericAllocationHandle handle, struct spw_piece *piece,
                                      bool released);

/* Notes that the driver has mapped a handle at an address. */
void spw_program_mappings_map(CUmemGenericAllocationHandle handle, uint64_t address,
                              uint64_t bytes);

/* Forgets the mapping at an address; *ret_bytes is its size, 0 when there was none. Returns its
 * piece if that is unused now, or NULL. */
struct spw_piece *spw_program_mappings_unmap(uint64_t address, uint64_t *ret_bytes);

/* Adds a reference: the driver gave a handle of the memory that is mapped at an address. The
 * address may lie inside the mapping. */
void spw_program_mappings_retain(CUmemGenericAllocationHandle handle, uint64_t address);

/* Returns how many bytes from `address` on, at most `most`, are all in spilled pieces, or all
 * outside of them. */
uint64_t spw_program_mappings_run(uint64_t address, uint64_t most);

/* The device that the program asked for, if the address is in a spilled piece; -1 if it is not. */
int spw_program_mappings_spilled_from(uint64_t address);

/* In a child after fork: empties the tables. */
void spw_program_mappings_reset(void);
