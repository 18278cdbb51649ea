/* Carrying out what a rule wishes for an allocation: as far as it can be had, else as without the
 * rule. Locking: the tier's and the pool's, inside. */
#pragma once

#include "serve/decision.h"
#include "track/request.h"

/* Blocks of all devices that are without memory until the device is first given work, and devices
 * of which a move has lost something. */
extern _Atomic uint64_t spw_serve_placement_lazies;

/* Gives them their memory: `api` is about to submit work. CUDA_ERROR_OUT_OF_MEMORY, reported, when
 * it cannot be had. */
CUresult spw_serve_placement_commit(const char *api);

/* Allocates a block by a decision. SPW_E_QUOTA when the limit of its rule says that it fails; else
 * as spw_track_spill_alloc. */
enum spw_err spw_serve_placement_alloc(const struct spw_track_request *request,
                                       struct spw_decision *decision,
                                       struct spw_result *ret_result);
