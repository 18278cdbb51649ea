#include "intercept/registered.h"

#include "driver/register_api.h"
#include "track/device.h"
#include "track/lease.h"
#include "intercept/library.h"
#include "serve/placement.h"
#include "pool/pool.h"

#include <errno.h>

void spw_intercept_registered_fix(CUdeviceptr address, size_t bytes)
{
    static const struct spw_block_attributes known = {.fix = SPW_FIXED_SHARED};
    struct spw_pool *pool;
    bool ours;

    if (atomic_load_explicit(&spw_process.state, memory_order_acquire) != SPW_PROCESS_RUNNING) {
        return;
    }
    spw_track_lease_enter();
    ours = spw_track_device_owner(address, &pool) != NULL;
    if (ours) {
        (void)spw_pool_set_attributes(pool, address, bytes, &known);
    }
    spw_track_lease_leave();
    if (ours && atomic_load_explicit(&spw_serve_placement_lazies, memory_order_acquire) > 0) {
        /* Whoever registers memory that cannot be had says so. */
        (void)spw_serve_placement_commit("registration");
    }
}

/* ---- entries ---- */

#define SPW_NCCL_INVALID_USAGE     5
#define SPW_CUFILE_NOT_INITIALIZED ((struct spw_cufile_error){5001, CUDA_SUCCESS})

/* The address that ibv_reg_mr_ex is given; NULL: it is given a file. */
static const void *address_of(const struct ibv_mr_init_attr *attributes)
{
    enum { HAS_ADDRESS = 1 << 1 };

    return (attributes->comp_mask & HAS_ADDRESS) != 0 ? attributes->addr : NULL;
}

/* Each entry is written out: its return address says who calls. */
#define SPW_FN(kind, symbol, base, since, flags, stream, params, args)
#define SPW_RUNTIME(kind, symbol, params, args)
#define SPW_REGISTER(library, result, symbol, params, args, address, bytes, absent)                \
    SPW_EXPORT result symbol params                                                                \
    {                                                                                              \
        __typeof__(symbol) *real =                                                                 \
            (__typeof__(symbol) *)(uintptr_t)spw_intercept_library_function(                       \
                SPW_FN_##symbol, __builtin_return_address(0));                                     \
        result answer;                                                                             \
                                                                                                   \
        if (real == NULL) {                                                                        \
            return absent;                                                                         \
        }                                                                                          \
        spw_intercept_registered_fix((CUdeviceptr)(uintptr_t)(address), bytes);                    \
        SPW_LIBRARY_CALL(answer, SPW_FN_##symbol, real, args);                                     \
        return answer;                                                                             \
    }
#include "driver/functions.def"
#undef SPW_FN
#undef SPW_RUNTIME
#undef SPW_REGISTER
#undef SPW_NCCL_INVALID_USAGE
#undef SPW_CUFILE_NOT_INITIALIZED
