#include "hook/runtime.h"

#include "driver/dl.h"
#include "driver/runtime_api.h"
#include "hook/entry.h"
#include "hook/hook.h"
#include "hook/resolve.h"
#include "hook/stream.h"

#include <dlfcn.h>
#include <link.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define LIBRARY "libcudart.so"

/* Where one place of the program that calls a function of the runtime ends up. */
struct site {
    const struct site *next;
    const void *caller;
    enum spw_fn fn;
    void *real;
};

enum { BUCKETS = 256 };

/* What was found, by call site: with several runtimes in a process it depends on who calls. Sites
 * are only ever added. `given` is what dlsym gave our entry for: the answer for callers in whose
 * scope there is no runtime. */
static struct {
    _Atomic(const struct site *) buckets[BUCKETS];
    _Atomic(void *) given[SPW_FN_COUNT];
} known;

/* ---- which runtime ---- */

/* The runtimes that are loaded as libraries of their own; static copies export nothing. */
struct runtimes {
    int count;
    char path[4096]; /* of the last one */
};

static int visit(struct dl_phdr_info *info, size_t size, void *context)
{
    struct runtimes *found = context;

    if (strstr(info->dlpi_name, LIBRARY) != NULL && strlen(info->dlpi_name) < sizeof(found->path)) {
        strcpy(found->path, info->dlpi_name);
        found->count++;
    }
    return 0;
}

/* The library's function, unless it is our own. */
static void *theirs(void *found)
{
    return found == NULL || spw_entry_find(found) != SPW_FN_COUNT ? NULL : found;
}

static void *in_library(const char *path, const char *name)
{
    void *library = dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
    void *found = NULL;

    if (library != NULL) {
        found = theirs(spw_dl_symbol(library, name));
        (void)dlclose(library);
    }
    return found;
}

/* Keeps the library of a function loaded for good. */
static bool hold(const void *found)
{
    Dl_info info;

    return dladdr(found, &info) != 0 && dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD) != NULL;
}

/* The function that a caller would have reached without us. What comes behind us may be another
 * interposer and goes first, unless there are several runtimes: then it is the caller's own. */
static void *look_up(enum spw_fn fn, const void *caller)
{
    const char *name = spw_driver_symbol(fn);
    struct runtimes loaded = {.count = 0};
    void *found = NULL;

    (void)dl_iterate_phdr(visit, &loaded);
    if (loaded.count > 1) {
        found = theirs(spw_dl_symbol_for(caller, name));
    }
    if (found == NULL) {
        found = theirs(spw_dl_symbol(RTLD_NEXT, name));
    }
    if (found == NULL) {
        found = theirs(spw_dl_symbol_for(caller, name));
    }
    if (found == NULL) {
        found = atomic_load_explicit(&known.given[fn], memory_order_acquire);
    }
    if (found == NULL && loaded.count > 0) {
        found = in_library(loaded.path, name);
    }
    return found;
}

static void remember(_Atomic(const struct site *) *bucket, enum spw_fn fn, const void *caller,
                     void *real)
{
    struct site *site = hold(real) ? malloc(sizeof(*site)) : NULL;
    const struct site *head = atomic_load_explicit(bucket, memory_order_relaxed);

    if (site == NULL) {
        return;
    }
    *site = (struct site){head, caller, fn, real};
    while (!atomic_compare_exchange_weak_explicit(bucket, &head, site, memory_order_release,
                                                  memory_order_relaxed)) {
        site->next = head;
    }
}

static void *real_function(enum spw_fn fn, const void *caller)
{
    size_t hash = (size_t)((uintptr_t)caller * 0x9e3779b97f4a7c15u >> 32) % BUCKETS;
    _Atomic(const struct site *) *bucket = &known.buckets[hash];
    const struct site *site = atomic_load_explicit(bucket, memory_order_acquire);
    void *real;

    for (; site != NULL; site = site->next) {
        if (site->caller == caller && site->fn == fn) {
            return site->real;
        }
    }
    real = look_up(fn, caller);
    if (real != NULL) {
        remember(bucket, fn, caller, real);
    }
    return real;
}

void *spw_runtime_substitute(enum spw_fn fn, void *found)
{
    struct runtimes loaded = {.count = 0};
    void *given = NULL;

    (void)dl_iterate_phdr(visit, &loaded);
    if (loaded.count <= 1 && hold(found)) {
        (void)atomic_compare_exchange_strong(&known.given[fn], &given, found);
    }
    return atomic_load_explicit(&known.given[fn], memory_order_acquire) == found
               ? spw_entry_address(fn)
               : found;
}

/* ---- notes ---- */

static struct spw_note begin(enum spw_fn fn, const void *caller)
{
    struct spw_note outer = spw_note;

    spw_note = (struct spw_note){fn, caller, false};
    return outer;
}

/* Ends a note; what arrived within an inner call arrived within the outer one. */
static bool end(struct spw_note outer)
{
    bool arrived = spw_note.arrived;

    spw_note = outer;
    spw_note.arrived |= arrived;
    return arrived;
}

/* An allocation that no driver door saw: this runtime reaches the driver by another way. */
static void missed(void)
{
    const struct spw_stream_info *here = spw_hook_serves() ? spw_stream_current() : NULL;

    if (here != NULL) {
        spw_counter_add(&spw_hook.devices[here->ordinal].counters->runtime_missed, 1);
    }
}

/* ---- entries ---- */

/* Forwards a call under a note. Each entry is written out: its return address says who calls. */
#define SPW_NOTED(name, params, args, after)                                                       \
    SPW_EXPORT cudaError_t CUDARTAPI name params                                                   \
    {                                                                                              \
        const void *caller = __builtin_return_address(0);                                          \
        __typeof__(name) *real =                                                                   \
            (__typeof__(name) *)(uintptr_t)real_function(SPW_FN_##name, caller);                   \
        struct spw_note outer;                                                                     \
        cudaError_t result;                                                                        \
        bool arrived;                                                                              \
                                                                                                   \
        if (real == NULL) {                                                                        \
            return cudaErrorSharedObjectSymbolNotFound;                                            \
        }                                                                                          \
        outer = begin(SPW_FN_##name, caller);                                                      \
        result = real args;                                                                        \
        arrived = end(outer);                                                                      \
        after(result, arrived, SPW_UNWRAP args);                                                   \
        return result;                                                                             \
    }

/* What is done when the real function has returned; the arguments are the call's own. */
#define SPW_UNWRAP(...)             __VA_ARGS__
#define SPW_AFTER_NOTE(...)         (void)arrived
#define SPW_AFTER_NOTE_ALLOC(...)   SPW_AFTER_ALLOC(__VA_ARGS__)
#define SPW_AFTER_NOTE_RESOLVE(...) SPW_AFTER_RESOLVE(__VA_ARGS__)
#define SPW_AFTER_ALLOC(result, arrived, address, ...)                                             \
    if (result == cudaSuccess && !arrived && *(address) != NULL) {                                 \
        missed();                                                                                  \
    }
#define SPW_AFTER_RESOLVE(result, arrived, name, address, ...)                                     \
    (void)arrived;                                                                                 \
    if (result == cudaSuccess && address != NULL && *(address) != NULL) {                          \
        *(address) = spw_resolve(*(address), name);                                                \
    }

#define SPW_FN(kind, symbol, base, since, flags, stream, params, args)
#define SPW_RUNTIME(kind, name, params, args) SPW_NOTED(name, params, args, SPW_AFTER_##kind)
#include "driver/functions.def"
#undef SPW_FN
#undef SPW_RUNTIME
#undef SPW_NOTED
#undef SPW_UNWRAP
#undef SPW_AFTER_NOTE
#undef SPW_AFTER_NOTE_ALLOC
#undef SPW_AFTER_NOTE_RESOLVE
#undef SPW_AFTER_ALLOC
#undef SPW_AFTER_RESOLVE
