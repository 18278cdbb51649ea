/* Accounting of the real driver's allocations, and of requests that are refused.
 *
 * Locking: takes spw_locks.ledger and the pools' locks. */
#pragma once

#include "device/state.h"
#include "program/ledger.h"
#include "submit/indirect.h"

/* Enters an allocation of the real driver in the ledger and the counters. */
void spw_serve_account_allocated(CUdeviceptr address, const struct spw_ledger_entry *entry);

/* Accounts for the memory that ends with a context. The context is about to be destroyed, or is
 * gone. */
void spw_serve_account_end_context(CUcontext context);

/* A free of memory that the real driver allocated, while it is under way. */
struct spw_passed_free {
    CUdeviceptr address;
    struct spw_ledger_entry entry;
    struct spw_span span;
    bool entered; /* the ledger had `entry` */
    bool mapped;  /* `span` was page-locked or managed memory */
};

/* To be called before the real free. */
void spw_serve_account_free_begin(CUdeviceptr address, struct spw_passed_free *ret_free);

/* To be called after the real free with its result, which is returned. A failed free is undone. */
CUresult spw_serve_account_free_end(const struct spw_passed_free *free, CUresult result);

/* Refuses an allocation of call site `site`: counts it, reports it to the user (oom.h) and writes
 * the statistics file. `api` is the driver's function; a call that came through the runtime is
 * reported under the runtime's function. Returns CUDA_ERROR_OUT_OF_MEMORY. */
CUresult spw_serve_account_oom(struct spw_device *device, struct spw_pool *pool, const char *api,
                               uint64_t bytes, uint32_t site, enum spw_err err);

/* Accounts the refusal of a request that PyTorch should have repeated but did not; see
 * spw_device_gave_up. Does nothing when there is no such request. */
void spw_serve_account_given_up(void);

/* The accounted size of an allocation of `bytes`. */
static inline uint64_t spw_serve_account_round(uint64_t bytes)
{
    return (bytes + 511) & ~UINT64_C(511);
}
