/* How much host memory the content of simulated memory may take (SPILLWAY_SIM_PAYLOAD).
 *
 * Kernels do nothing, so nearly all content came by copies from the host. When it takes as much as
 * is allowed, copies and fills of 1 MiB and more move no data: what they would have written reads
 * as zeros. Smaller ones always do, so flags, losses and sizes stay right; and what is read back
 * from the device is never left out. What the host writes into mapped memory itself is counted too.
 *
 * Locking: the simulator's lock (entry.h) is held. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include <cuda.h>

/* Whether the data of a copy or fill of `size` bytes to `dst` have room. If not, that is counted,
 * said once, and the destination should be zeroed instead. */
bool sim_payload_admits(CUdeviceptr dst, size_t size);
