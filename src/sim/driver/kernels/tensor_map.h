/* Tensor maps: opaque descriptors of memory that are passed to kernels in place of an address. The
 * format of tensor maps is not documented. Simulated maps contain only the address, encoded so that
 * no word of the map is a valid address.
 *
 * No locking. */
#pragma once

#include <cuda.h>

/* Writes the address into a map. */
void sim_tensor_map_seal(CUtensorMap *map, const void *address);

/* The address in a map; a meaningless number if the address was not written by
 * sim_tensor_map_seal(). */
CUdeviceptr sim_tensor_map_address(const CUtensorMap *map);
