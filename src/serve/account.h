/* Accounting of what the real driver answers: memory that passed, out of memory, lost runtime
 * calls.
 *
 * Locking: those of the ledger and the pools, inside. */
#pragma once

#include "track/process.h"
#include "track/indirect.h"
#include "track/ledger.h"

/* Enters an allocation of the real driver in the ledger and the counters. */
void spw_serve_account_allocated(struct spw_device *device, CUdeviceptr address,
                                 enum spw_ledger_kind kind, uint64_t bytes, uint32_t site);

/* Strikes it out before the real driver frees it, so that nobody who gets the address next is
 * confused; false when it was never entered. Puts it back when the free failed after all. */
bool spw_serve_account_freeing(CUdeviceptr address, struct spw_ledger_entry *ret_entry);
void spw_serve_account_not_freed(CUdeviceptr address, const struct spw_ledger_entry *entry);

/* The whole of a free of the real driver's memory; `call` is the real one. Returns its result. */
#define SPW_FREE_PASSED(address, call)                                                             \
    do {                                                                                           \
        struct spw_ledger_entry entry;                                                             \
        struct spw_span span;                                                                      \
        bool mapped = spw_track_indirect_unmapped((address), &span);                               \
        bool entered = spw_serve_account_freeing((address), &entry);                               \
        CUresult result = spw_track_driver()->call;                                                \
                                                                                                   \
        if (entered && result != CUDA_SUCCESS) {                                                   \
            spw_serve_account_not_freed((address), &entry);                                        \
        }                                                                                          \
        if (mapped && result != CUDA_SUCCESS) {                                                    \
            spw_track_indirect_mapped(span.begin, span.end - span.begin);                          \
        }                                                                                          \
        return result;                                                                             \
    } while (0)

/* An allocation of `site` is refused: counts it, notes what was missing, tells the user (oom.h),
 * writes the statistics file. `api` is the driver's function; the runtime's is named instead where
 * the call came from there. Returns CUDA_ERROR_OUT_OF_MEMORY. */
CUresult spw_serve_account_oom(struct spw_device *device, struct spw_pool *pool, const char *api,
                               uint64_t bytes, uint32_t site, enum spw_err err);

/* The size that is accounted for an allocation of `bytes`. */
static inline uint64_t spw_serve_account_round(uint64_t bytes)
{
    return (bytes + 511) & ~UINT64_C(511);
}
