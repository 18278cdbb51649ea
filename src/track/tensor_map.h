/* Tensor maps: which address an opaque descriptor stands for. The driver makes one from an address,
 * and the program gives it to a kernel by value, or copies it to memory for it.
 *
 * Locking: a mutex inside. The 4,096 youngest maps are known: who encodes more of them does so
 * for each launch, and uses the older ones no more. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "track/state.h"

/* Remembers what the driver has made of `address`. */
void spw_track_tensor_map_add(const void *map, uint64_t address);

/* The address that these SPW_TENSOR_MAP_BYTES stand for; 0 when they are no map that is known. */
uint64_t spw_track_tensor_map_find(const void *bytes);

/* Whether any is known. No lock. */
bool spw_track_tensor_map_any(void);

/* In a child after fork: an empty table for the child. */
void spw_track_tensor_map_reset(void);
