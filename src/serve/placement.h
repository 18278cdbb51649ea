/* Allocation with the placement that a policy rule requests. If that placement is impossible,
 * allocates as if there were no rule. Locking: takes the locks of the tier and of the pool. */
#pragma once

#include "call/call.h"
#include "policy/decision.h"

/* Returns true while a block waits for its memory. spw_serve_placement_commit must then be called
 * before work is submitted. */
static inline bool spw_serve_placement_is_due(void)
{
    return SPW_UNLIKELY(atomic_load_explicit(&spw_devices.lazies, memory_order_acquire) > 0);
}

/* Gives lazy blocks their memory, because `api` is about to submit work. If there is too little
 * memory, reports and returns CUDA_ERROR_OUT_OF_MEMORY. */
CUresult spw_serve_placement_commit(const char *api);

/* Allocates a block that the pool of the call's device refused. If the device is full, first asks
 * other processes to free memory (service/share.h). If that does not help, allocates as
 * spw_device_alloc does. */
enum spw_err spw_serve_placement_refused(const struct spw_call *call, enum spw_err refused,
                                         struct spw_result *ret_result);

/* Allocates a block by a decision of the policy. Returns SPW_E_QUOTA if the limit of the rule
 * refuses the block and the rule makes the call fail in this case. Otherwise returns the errors of
 * spw_device_alloc. */
enum spw_err spw_serve_placement_alloc(const struct spw_call *call, struct spw_decision *decision,
                                       struct spw_result *ret_result);
