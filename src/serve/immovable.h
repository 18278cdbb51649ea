/* Memory whose physical place others know: a network card, a file system, other processes.
 *
 * Locking: takes the pool's lock. */
#pragma once

#include <stddef.h>

#include "driver/cuda_api.h"

/* Keeps the blocks in [address, address + bytes) where they are until they are freed, and backs
 * those without memory. To be called before the others learn the address, so that no move can fall
 * in between. Memory that is not the pool's is left alone. */
void spw_serve_immovable_mark(CUdeviceptr address, size_t bytes);
