/* Tensor maps: opaque descriptors of memory, which kernels are given in place of its address. Their
 * format is not documented. The simulated ones keep only the address, in a form that is not an
 * address itself.
 *
 * No locking. */
#pragma once

#include <cuda.h>

/* Writes the address into a map. */
void sim_tensor_map_seal(CUtensorMap *map, const void *address);

/* The address that a map stands for; a meaningless number if the words are no map. */
CUdeviceptr sim_tensor_map_address(const CUtensorMap *map);
