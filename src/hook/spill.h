/* What the pool refuses, asked of the host tier. Locking: the tier's and the pool's, inside. */
#pragma once

#include "hook/hook.h"

/* The program has waited for the device, or a stream of it: what has room there may come back. */
void spw_spill_rest(struct spw_device *device);

/* A block of `bytes` for which the pool answered `refused`: on the device if room can be made, else
 * on the host. Answers `refused` when there is no tier or it has no room either. */
enum spw_err spw_spill_alloc(struct spw_device *device, uint64_t bytes,
                             const struct spw_stream *stream, CUcontext context,
                             enum spw_err refused, uint64_t *ret_address);
