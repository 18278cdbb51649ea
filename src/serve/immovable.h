/* Memory whose physical place is known to others: a network card, a file system, or another
 * process.
 *
 * Locking: takes the pool's lock. */
#pragma once

#include <stddef.h>

#include "driver/cuda_api.h"

/* Keeps the blocks in [address, address + bytes) at their physical place until they are freed.
 * Blocks without memory get memory first. Must be called before the others learn the address, so
 * that no move can happen in between. Memory outside the pool is left unchanged. */
void spw_serve_immovable_mark(CUdeviceptr address, size_t bytes);
