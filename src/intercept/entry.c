/* The driver's entries; those of the runtime are in runtime.c, those that register memory in
 * registered.c. */
#include "intercept/entry.h"

#include "driver/register_api.h"
#include "driver/runtime_api.h"
#include "track/process.h"
#include "track/indirect.h"
#include "track/lease.h"
#include "track/arguments.h"
#include "serve/handlers.h"
#include "serve/placement.h"
#include "track/spill.h"
#include "migrate/barrier.h"

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

/* A served call is answered by its handler, unless it is one of our own, or CUDA is not in use as
 * far as spillway is concerned. It has come through a driver door, whatever the answer. */
#define SPW_ENTRY_SERVE(symbol, params, args, ...)                                                 \
    SPW_EXPORT CUresult CUDAAPI symbol params                                                      \
    {                                                                                              \
        struct spw_driver *driver = spw_track_driver();                                            \
                                                                                                   \
        CUresult result;                                                                           \
                                                                                                   \
        spw_track_call.arrived = true;                                                             \
        if (!spw_track_serves()) {                                                                 \
            return driver->symbol args;                                                            \
        }                                                                                          \
        spw_track_lease_enter();                                                                   \
        result = spw_serve_##symbol args;                                                          \
        spw_track_lease_leave();                                                                   \
        return result;                                                                             \
    }

#define SPW_ENTRY_HANDLE(symbol, params, args, ...)                                                \
    SPW_EXPORT CUresult CUDAAPI symbol params                                                      \
    {                                                                                              \
        return spw_serve_##symbol args;                                                            \
    }

#define SPW_ENTRY_FORWARD(symbol, params, args, ...)                                               \
    SPW_EXPORT CUresult CUDAAPI symbol params                                                      \
    {                                                                                              \
        struct spw_driver *driver = spw_track_driver();                                            \
        CUresult result;                                                                           \
                                                                                                   \
        SPW_FORWARD(result, driver->symbol args);                                                  \
        return result;                                                                             \
    }

#define SPW_ENTRY_PASS(symbol, params, args, ...)                                                  \
    SPW_EXPORT CUresult CUDAAPI symbol params                                                      \
    {                                                                                              \
        return spw_track_driver()->symbol args;                                                    \
    }

/* What has waited for the first work gets its memory now. */
#define SPW_COMMIT_LAZY(symbol)                                                                    \
    do {                                                                                           \
        if (spw_serve_placement_is_due() && spw_serve_placement_commit(#symbol) != CUDA_SUCCESS) { \
            return CUDA_ERROR_OUT_OF_MEMORY;                                                       \
        }                                                                                          \
    } while (0)

/* What enqueues work passes the gate, after `look`: `call` enqueues it. */
#define SPW_ENTRY_GATED(symbol, params, look, call)                                                \
    SPW_EXPORT CUresult CUDAAPI symbol params                                                      \
    {                                                                                              \
        struct spw_driver *driver = spw_track_driver();                                            \
        CUresult result;                                                                           \
                                                                                                   \
        SPW_COMMIT_LAZY(symbol);                                                                   \
        look;                                                                                      \
        spw_migrate_barrier_acquire();                                                             \
        call;                                                                                      \
        spw_migrate_barrier_release();                                                             \
        return result;                                                                             \
    }

#define SPW_ENTRY_SUBMIT(symbol, params, args, ...)                                                \
    SPW_ENTRY_GATED(symbol, params, (void)0, SPW_FORWARD(result, driver->symbol args))
/* What may have enqueued a part when it fails is not repeated. `copy` is what brings addresses with
 * it while memory is short. */
#define SPW_ENTRY_PARTS(symbol, params, args, copy)                                                \
    SPW_ENTRY_GATED(symbol, params,                                                                \
                    spw_track_arguments_wanted()                                                   \
                        ? (spw_track_lease_enter(), (copy), spw_track_lease_leave())               \
                        : (void)0,                                                                 \
                    result = driver->symbol args)
#define SPW_ENTRY_SUBMIT_PARTS(symbol, params, args, ...)                                          \
    SPW_ENTRY_GATED(symbol, params, (void)0, result = driver->symbol args)

/* And what it uses is told while memory is short: `look` finds it out. */
#define SPW_ENTRY_USE(symbol, params, args, stream, flags, look)                                   \
    SPW_EXPORT CUresult CUDAAPI symbol params                                                      \
    {                                                                                              \
        struct spw_driver *driver = spw_track_driver();                                            \
        bool wanted = spw_track_arguments_wanted();                                                \
        struct spw_arguments use;                                                                  \
        CUresult result;                                                                           \
                                                                                                   \
        SPW_COMMIT_LAZY(symbol);                                                                   \
        if (SPW_UNLIKELY(wanted)) {                                                                \
            spw_track_lease_enter();                                                               \
            look;                                                                                  \
            spw_track_arguments_expect(&use, stream,                                               \
                                       (flags) == CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM);  \
            spw_track_lease_leave();                                                               \
        }                                                                                          \
        spw_migrate_barrier_acquire();                                                             \
        if (SPW_UNLIKELY(wanted)) {                                                                \
            spw_track_lease_enter();                                                               \
            spw_track_arguments_note(&use);                                                        \
            spw_track_lease_leave();                                                               \
        }                                                                                          \
        SPW_FORWARD(result, driver->symbol args);                                                  \
        spw_migrate_barrier_release();                                                             \
        return result;                                                                             \
    }

#define SPW_ENTRY_LAUNCH(symbol, params, args, stream, flags)                                      \
    SPW_ENTRY_USE(symbol, params, args, stream, flags,                                             \
                  spw_track_arguments_launch(&use, f, kernelParams, extra))
#define SPW_ENTRY_LAUNCH_PLAIN(symbol, params, args, stream, flags)                                \
    SPW_ENTRY_USE(symbol, params, args, stream, flags,                                             \
                  spw_track_arguments_launch(&use, f, kernelParams, NULL))

/* The arguments of the functions that name their memory: three to seven. */
/* clang-format off */
#define SPW_LOOK_3(a, b, c)                                                                        \
    SPW_USE_ARGUMENT(&use, a), SPW_USE_ARGUMENT(&use, b), SPW_USE_ARGUMENT(&use, c)
#define SPW_LOOK_4(a, b, c, d)          SPW_LOOK_3(a, b, c), SPW_USE_ARGUMENT(&use, d)
#define SPW_LOOK_5(a, b, c, d, e)       SPW_LOOK_4(a, b, c, d), SPW_USE_ARGUMENT(&use, e)
#define SPW_LOOK_6(a, b, c, d, e, f)    SPW_LOOK_5(a, b, c, d, e), SPW_USE_ARGUMENT(&use, f)
#define SPW_LOOK_7(a, b, c, d, e, f, g) SPW_LOOK_6(a, b, c, d, e, f), SPW_USE_ARGUMENT(&use, g)
#define SPW_LOOK_OF(a, b, c, d, e, f, g, look, ...) look
#define SPW_LOOK(...)                                                                              \
    SPW_LOOK_OF(__VA_ARGS__, SPW_LOOK_7, SPW_LOOK_6, SPW_LOOK_5, SPW_LOOK_4, SPW_LOOK_3, , , )     \
    (__VA_ARGS__)
/* clang-format on */
#define SPW_ENTRY_TOUCH(symbol, params, args, stream, flags)                                       \
    SPW_ENTRY_USE(symbol, params, args, stream, flags,                                             \
                  (spw_track_arguments_touch(&use), SPW_LOOK args))

/* And a copy may bring addresses with it. */
#define SPW_COPY(to, from, bytes, ...)                                                             \
    spw_track_indirect_copy((uint64_t)(uintptr_t)(to), (uint64_t)(uintptr_t)(from), (bytes))
#define SPW_COPY_PEER(to, to_context, from, from_context, bytes, ...) SPW_COPY(to, from, bytes, 0)
#define SPW_ENTRY_COPY(symbol, params, args, stream, flags)                                        \
    SPW_ENTRY_USE(symbol, params, args, stream, flags,                                             \
                  (spw_track_arguments_touch(&use), SPW_LOOK args, SPW_COPY_OF args))
#define SPW_COPY_OF(...) SPW_COPY(__VA_ARGS__, 0)
#define SPW_ENTRY_COPY_PEER(symbol, params, args, stream, flags)                                   \
    SPW_ENTRY_USE(symbol, params, args, stream, flags,                                             \
                  (spw_track_arguments_touch(&use), SPW_LOOK args, SPW_COPY_PEER_OF args))
#define SPW_COPY_PEER_OF(...) SPW_COPY_PEER(__VA_ARGS__, 0)

/* Rows of an array or a volume, whose addresses are not looked at for themselves. */
#define SPW_ENTRY_COPY_ROWS(symbol, params, args, stream, flags)                                   \
    SPW_ENTRY_USE(symbol, params, args, stream, flags,                                             \
                  (spw_track_arguments_anything(&use),                                             \
        _Generic(pCopy,                                                                            \
                           const CUDA_MEMCPY2D *:                                                  \
        spw_track_indirect_copy_2d,                                                                \
                           const CUDA_MEMCPY3D *:                                                  \
        spw_track_indirect_copy_3d,                                                                \
                           const CUDA_MEMCPY3D_PEER *: spw_track_indirect_copy_3d_peer)(pCopy)))

/* Several at once. */
#define SPW_ENTRY_COPY_PARTS(symbol, params, args, ...)                                            \
    SPW_ENTRY_PARTS(symbol, params, args, spw_track_indirect_copy_batch(dsts, srcs, sizes, count))
#define SPW_ENTRY_COPY_ROWS_PARTS(symbol, params, args, ...)                                       \
    SPW_ENTRY_PARTS(symbol, params, args, spw_track_indirect_copy_3d_batch(opList, numOps))

#define SPW_ENTRY_START   SPW_ENTRY_HANDLE
#define SPW_ENTRY_RESOLVE SPW_ENTRY_HANDLE
#define SPW_FN(kind, symbol, base, since, flags, stream, params, args)                             \
    SPW_ENTRY_##kind(symbol, params, args, stream, flags)
#define SPW_RUNTIME(kind, symbol, params, args)
#define SPW_REGISTER(...)
#include "driver/functions.def"
#undef SPW_FN
#undef SPW_RUNTIME
#undef SPW_REGISTER
#undef SPW_ENTRY_START
#undef SPW_ENTRY_RESOLVE
#undef SPW_ENTRY_SERVE
#undef SPW_ENTRY_HANDLE
#undef SPW_ENTRY_FORWARD
#undef SPW_ENTRY_GATED
#undef SPW_ENTRY_SUBMIT
#undef SPW_ENTRY_SUBMIT_PARTS
#undef SPW_ENTRY_PARTS
#undef SPW_ENTRY_COPY
#undef SPW_ENTRY_COPY_PEER
#undef SPW_ENTRY_COPY_ROWS
#undef SPW_ENTRY_COPY_PARTS
#undef SPW_ENTRY_COPY_ROWS_PARTS
#undef SPW_COPY
#undef SPW_COPY_OF
#undef SPW_COPY_PEER
#undef SPW_COPY_PEER_OF
#undef SPW_COMMIT_LAZY
#undef SPW_ENTRY_USE
#undef SPW_ENTRY_LAUNCH
#undef SPW_ENTRY_LAUNCH_PLAIN
#undef SPW_ENTRY_TOUCH
#undef SPW_LOOK
#undef SPW_LOOK_OF
#undef SPW_LOOK_3
#undef SPW_LOOK_4
#undef SPW_LOOK_5
#undef SPW_LOOK_6
#undef SPW_LOOK_7
#undef SPW_ENTRY_PASS

static void (*const entries[])(void) = {
#define SPW_FN(kind, symbol, base, since, flags, stream, params, args) (void (*)(void)) symbol,
#define SPW_RUNTIME(kind, symbol, params, args)                        (void (*)(void)) symbol,
#define SPW_REGISTER(library, result, symbol, ...)                     (void (*)(void)) symbol,
#include "driver/functions.def"
#undef SPW_FN
#undef SPW_RUNTIME
#undef SPW_REGISTER
};

static_assert(sizeof(entries) / sizeof(entries[0]) == SPW_FN_COUNT, "an entry per row");

void *spw_intercept_entry_address(enum spw_fn fn)
{
    return (void *)(uintptr_t)entries[fn];
}

enum spw_fn spw_intercept_entry_find(const void *address)
{
    size_t fn = 0;

    while (fn < SPW_FN_COUNT && (uintptr_t)entries[fn] != (uintptr_t)address) {
        fn++;
    }
    return (enum spw_fn)fn;
}
