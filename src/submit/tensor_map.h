/* Tensor maps (CUtensorMap). They are opaque descriptors that the driver makes from an address. A
 * program passes them to kernels by value or in memory. This table has the address of each
 * descriptor.
 *
 * Only the 4,096 newest maps are known. A program with more maps makes new maps for each launch,
 * and does not use old maps again. Locking: spw_locks.tensor_maps. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Enters a map that the driver made from `address`. */
void spw_submit_tensor_map_add(const void *map, uint64_t address);

/* Returns the address that the driver made this map from; 0 if the map is not known. The map has
 * SPW_TENSOR_MAP_BYTES bytes. */
uint64_t spw_submit_tensor_map_find(const void *bytes);

/* Returns true if any map is known. No lock. */
bool spw_submit_tensor_map_any(void);

/* In a child after fork: empties the table. */
void spw_submit_tensor_map_reset(void);
