/* The entries of functions that register memory with a network card, a file system or NCCL. */
#include "driver/register_api.h"
#include "intercept/library.h"
#include "serve/immovable.h"
#include "track/process.h"

#include <errno.h>

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
        spw_serve_immovable_mark((CUdeviceptr)(uintptr_t)(address), bytes);                        \
        SPW_LIBRARY_CALL(answer, SPW_FN_##symbol, real, args);                                     \
        return answer;                                                                             \
    }
#include "driver/functions.def"
#undef SPW_FN
#undef SPW_RUNTIME
#undef SPW_REGISTER
#undef SPW_NCCL_INVALID_USAGE
#undef SPW_CUFILE_NOT_INITIALIZED
