/* Tensor maps: opaque descriptors of memory, which kernels are given in place of its address.
 * Arguments are checked; of what a map says the address alone is kept, in a form that is no
 * address, for nothing is documented of a real driver's.
 *
 * No locking. */
#pragma once

#include <cuda.h>

/* Writes the address into a map. */
void sim_tensor_map_seal(CUtensorMap *map, const void *address);

/* The address that a map stands for; some number for what is no map. */
CUdeviceptr sim_tensor_map_address(const CUtensorMap *map);
