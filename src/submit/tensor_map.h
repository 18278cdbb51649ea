/* Tensor maps (CUtensorMap): opaque descriptors that the driver makes from an address, and that a
 * program passes to kernels by value or in memory. This table has the address of each descriptor.
 *
 * The 4,096 youngest maps are known. A program that encodes more maps makes new maps for each
 * launch and does not use old maps again. Locking: spw_locks.tensor_maps. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Enters a map that the driver has made from `address`. */
void spw_submit_tensor_map_add(const void *map, uint64_t address);

/* The address that SPW_TENSOR_MAP_BYTES at `bytes` were made from; 0 when they are not a known map.
 */
uint64_t spw_submit_tensor_map_find(const void *bytes);

/* True when a map is known. No lock. */
bool spw_submit_tensor_map_any(void);

/* In a child after fork: empties the table. */
void spw_submit_tensor_map_reset(void);
