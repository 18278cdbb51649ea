/* Accounting of allocations that the real driver serves, and of requests that are refused.
 *
 * Locking: takes spw_locks.ledger and the pools' locks. */
#pragma once

#include "device/state.h"
#include "program/ledger.h"
#include "submit/indirect.h"

/* Enters an allocation of the real driver in the ledger and the counters. */
void spw_serve_account_allocated(CUdeviceptr address, const struct spw_ledger_entry *entry);

/* Accounts for the memory that is freed with a context. The context is about to be destroyed, or no
 * longer exists. */
void spw_serve_account_end_context(CUcontext context);

/* A free of memory that the real driver allocated, while the free is in progress. */
struct spw_passed_free {
    CUdeviceptr address;
    struct spw_ledger_entry entry;
    struct spw_span span;
    bool entered; /* the ledger had this `entry` */
    bool mapped;  /* this `span` was page-locked or managed memory */
};

/* Called before the real free. */
void spw_serve_account_free_begin(CUdeviceptr address, struct spw_passed_free *ret_free);

/* Called after the real free with its result, and returns that result. If the real free failed,
 * undoes the accounting. */
CUresult spw_serve_account_free_end(const struct spw_passed_free *free, CUresult result);

/* Refuses an allocation of call site `site`: counts the refusal, reports it to the user (oom.h) and
 * writes the statistics file. `api` is the driver's function. If the program called a function of
 * the runtime, the report names the runtime's function instead. Returns
 * CUDA_ERROR_OUT_OF_MEMORY. */
CUresult spw_serve_account_oom(struct spw_device *device, struct spw_pool *pool, const char *api,
                               uint64_t bytes, uint32_t site, enum spw_err err);

/* Accounts for the refusal of a request that PyTorch was expected to repeat but did not
 * (spw_device_gave_up). Does nothing if there is no such request. */
void spw_serve_account_given_up(void);

/* Returns the size that is accounted for an allocation of `bytes`. */
static inline uint64_t spw_serve_account_round(uint64_t bytes)
{
    return (bytes + 511) & ~UINT64_C(511);
}
