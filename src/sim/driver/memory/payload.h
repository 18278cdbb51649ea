/* The limit on host memory for the content of simulated memory (SPILLWAY_SIM_PAYLOAD).
 *
 * Most kernels compute nothing, so nearly all content comes from copies from the host. At the
 * limit, copies and fills of 1 MiB and more move no data: their destination reads as zeros. Smaller
 * copies and fills always move data, so flags, losses and sizes stay right. Copies to the host are
 * never skipped. Data that the host writes directly into mapped memory also count towards the
 * limit.
 *
 * Locking: the simulator's lock (core/lock.h) is held. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* True if there is room for the data of a copy or fill of `size` bytes, which replaces `replaced`
 * bytes of content. */
bool sim_payload_has_room(size_t size, size_t replaced);

/* Counts the bytes of a copy or fill for which there is no room, and warns once. The caller should
 * zero the destination instead. */
void sim_payload_drop(size_t size);
