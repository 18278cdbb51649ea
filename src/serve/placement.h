/* Allocation with the placement that a rule asks for. If that is impossible, allocates as without
 * the rule. Locking: takes the tier's and the pool's locks. */
#pragma once

#include "call/call.h"
#include "policy/decision.h"

/* True while a block waits for its memory: spw_serve_placement_commit is due before work is
 * submitted. */
static inline bool spw_serve_placement_is_due(void)
{
    return SPW_UNLIKELY(atomic_load_explicit(&spw_devices.lazies, memory_order_acquire) > 0);
}

/* Gives lazy blocks their memory, since `api` is about to submit work. Returns and reports
 * CUDA_ERROR_OUT_OF_MEMORY when there is too little memory. */
CUresult spw_serve_placement_commit(const char *api);

/* Allocates a block that the pool of the call's device refused: from memory that other processes
 * free when they are asked (service/share.h), or as spw_device_alloc does. */
enum spw_err spw_serve_placement_refused(const struct spw_call *call, enum spw_err refused,
                                         struct spw_result *ret_result);

/* Allocates a block by a decision. Returns SPW_E_QUOTA when the limit of its rule makes it fail;
 * otherwise the errors of spw_device_alloc. */
enum spw_err spw_serve_placement_alloc(const struct spw_call *call, struct spw_decision *decision,
                                       struct spw_result *ret_result);
