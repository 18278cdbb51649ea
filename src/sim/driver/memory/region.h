/* Regions: mapped device memory that the driver allocates itself, in whole granules.
 *
 * cuMemAlloc and memory pools cut their blocks from regions. Addresses come from arenas, which are
 * large reservations, at least one for each device. Each region is one chunk in one mapping.
 *
 * Locking: the simulator's lock (core/lock.h) is held. */
#pragma once

#include <stddef.h>

#include <cuda.h>

#include "sim/driver/core/device.h"
#include "sim/driver/memory/mapping.h"

/* Creates a region of `size` bytes, rounded up to whole granules. The device may access the region.
 * CUDA_ERROR_OUT_OF_MEMORY. */
CUresult sim_region_create(struct sim_device *device, size_t size, enum sim_mapping_kind kind,
                           struct sim_mapping **ret_region);

/* Maps a chunk of another process for use by the device. CUDA_ERROR_OUT_OF_MEMORY. */
CUresult sim_region_open(struct sim_device *device, struct sim_chunk *chunk,
                         struct sim_mapping **ret_region);

/* Frees a region. */
void sim_region_destroy(struct sim_mapping *region);
