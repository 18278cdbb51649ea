/* Carrying out what a rule wishes for an allocation: as far as it can be had, else as without the
 * rule. Locking: the tier's and the pool's, inside. */
#pragma once

#include "serve/decision.h"
#include "track/request.h"

/* True while a block waits for its memory: spw_serve_placement_commit is due before work is
 * submitted. */
static inline bool spw_serve_placement_is_due(void)
{
    return SPW_UNLIKELY(atomic_load_explicit(&spw_process.lazies, memory_order_acquire) > 0);
}

/* Gives them their memory: `api` is about to submit work. CUDA_ERROR_OUT_OF_MEMORY, reported, when
 * it cannot be had. */
CUresult spw_serve_placement_commit(const char *api);

/* Allocates a block by a decision. SPW_E_QUOTA when the limit of its rule says that it fails; else
 * as spw_track_spill_alloc. */
enum spw_err spw_serve_placement_alloc(const struct spw_request *request,
                                       struct spw_decision *decision, uint64_t *ret_address);
