#include "sim/driver/kernels/tensor_map.h"

/* The encoded form of an address in a map. It is not a valid address. */
#define SEALED(address) ((cuuint64_t)(address)*0x9e3779b97f4a7c15u ^ 0xa5a5a5a5a5a5a5a5u)
#define INVERSE         0xf1de83e19937733du /* of the factor, modulo 2^64 */

void sim_tensor_map_seal(CUtensorMap *map, const void *address)
{
    map->opaque[0] = SEALED((uintptr_t)address);
}

CUdeviceptr sim_tensor_map_address(const CUtensorMap *map)
{
    return (map->opaque[0] ^ 0xa5a5a5a5a5a5a5a5u) * INVERSE;
}
