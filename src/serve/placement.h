/* Allocation with the placement that a rule asks for. If that is impossible, allocates as without
 * the rule. Locking: the tier's and the pool's locks, inside. */
#pragma once

#include "serve/decision.h"
#include "track/call.h"

/* True while a block waits for its memory: spw_serve_placement_commit is due before work is
 * submitted. */
static inline bool spw_serve_placement_is_due(void)
{
    return SPW_UNLIKELY(atomic_load_explicit(&spw_process.lazies, memory_order_acquire) > 0);
}

/* Commits the lazy blocks, since `api` is about to submit work. Returns and reports
 * CUDA_ERROR_OUT_OF_MEMORY when there is none. */
CUresult spw_serve_placement_commit(const char *api);

/* Allocates a block by a decision. Returns SPW_E_QUOTA when the limit of its rule makes it fail;
 * other errors as spw_track_spill_alloc. */
enum spw_err spw_serve_placement_alloc(const struct spw_call *call, struct spw_decision *decision,
                                       struct spw_result *ret_result);
