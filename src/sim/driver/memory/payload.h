/* The limit on host memory for the content of simulated memory (SPILLWAY_SIM_PAYLOAD).
 *
 * Most kernels compute nothing, so nearly all content comes from copies from the host. When the
 * limit is reached, copies and fills of 1 MiB or more move no data, and their destination reads as
 * zeros. Smaller copies and fills always move data, so flags, losses and sizes stay correct. Copies
 * to the host are never skipped. Data that the host writes directly into mapped memory also count
 * towards the limit.
 *
 * Locking: the simulator's lock (core/lock.h) is held. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* True if there is room for the data of a copy or fill of `size` bytes. The copy or fill replaces
 * `replaced` bytes of existing content. */
bool sim_payload_has_room(size_t size, size_t replaced);

/* Counts the bytes of a copy or fill that has no room, and warns once. The caller should zero the
 * destination instead. */
void sim_payload_drop(size_t size);
