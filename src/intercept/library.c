#include "intercept/library.h"

#include "common/hash.h"
#include "driver/dl.h"
#include "intercept/entry.h"
#include "system/loader.h"
#include "system/room.h"

#include <dlfcn.h>
#include <link.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* For each row, the beginning of the file name of the function's library; NULL: a function of the
 * driver. */
static const char *const libraries[] = {
#define SPW_FN(symbol, ...)                NULL,
#define SPW_RUNTIME(symbol, ...)           "libcudart.so",
#define SPW_REGISTER(symbol, library, ...) "lib" #library ".so",
#include "driver/functions.def"
};

/* The real function that one call site of the program reaches. */
struct site {
    const struct site *next;
    const void *caller;
    enum spw_fn fn;
    void *real;
};

enum { BUCKETS = 256 };

/* The real functions that were found, in a hash table by call site; sites are never removed. For
 * each row, `given` is the first function that dlsym replaced by our entry. Callers that have no
 * such library in their scope get that function. */
static struct {
    _Atomic(const struct site *) buckets[BUCKETS];
    _Atomic(void *) given[SPW_FN_COUNT];
} known;

_Thread_local struct spw_library_call spw_intercept_library_call
    __attribute__((tls_model("initial-exec")));

/* ---- which library ---- */

enum { LIBRARY_PATH = 4096 };

/* The loaded copies of a library. A statically linked copy exports nothing and is not counted. */
struct copies {
    const char *name;
    int count;
    char *path; /* of the last copy, LIBRARY_PATH bytes; NULL: not wanted */
};

static int visit(struct dl_phdr_info *info, size_t size, void *context)
{
    struct copies *found = context;

    if (strstr(info->dlpi_name, found->name) != NULL && strlen(info->dlpi_name) < LIBRARY_PATH) {
        if (found->path != NULL) {
            strcpy(found->path, info->dlpi_name);
        }
        found->count++;
    }
    return 0;
}

/* `found`, or NULL if it is one of our entries. */
static void *theirs(void *found)
{
    return found == NULL || spw_intercept_entry_find(found) != SPW_FN_COUNT ? NULL : found;
}

static void *in_library(const char *path, const char *name)
{
    void *library = dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
    void *found = NULL;

    if (library != NULL) {
        found = theirs(spw_driver_dl_symbol(library, name));
        (void)dlclose(library);
    }
    return found;
}

/* Keeps the library of a function loaded for good. */
static bool hold(const void *found)
{
    struct link_map *map = NULL;
    Dl_info info;

    /* The program itself has an empty name, and is never unloaded. */
    return dladdr1(found, &info, (void **)&map, RTLD_DL_LINKMAP) != 0 &&
           (map->l_name[0] == '\0' || dlopen(map->l_name, RTLD_LAZY | RTLD_NOLOAD) != NULL);
}

/* True while `found` is running because we forwarded a call to it. Then it is an interposer that
 * now calls the function of the same name in the next library. */
static bool is_handing_on(enum spw_fn fn, const void *found)
{
    return spw_intercept_library_call.fn == fn && spw_intercept_library_call.real == found;
}

/* The function that a caller would have reached without us. If several copies of the library are
 * loaded, the copy in the caller's own scope is tried first. Then comes the next library in the
 * global order, as it may be another interposer. An interposer that is forwarding a call gets the
 * function that dlsym found for it. */
static void *look_up(enum spw_fn fn, const void *caller)
{
    const char *name = spw_driver_symbol(fn);
    char SPW_ROOM *path = spw_room_take(LIBRARY_PATH);
    struct copies loaded = {.name = libraries[fn], .path = path};
    void *given = atomic_load_explicit(&known.given[fn], memory_order_acquire);
    void *found = NULL;

    (void)spw_loader_iterate(visit, &loaded);
    if (loaded.count > 1) {
        found = theirs(spw_driver_dl_symbol_for(caller, name));
    }
    if (found == NULL) {
        found = theirs(spw_driver_dl_symbol_next(name));
    }
    if (found == NULL) {
        found = theirs(spw_driver_dl_symbol_for(caller, name));
    }
    if (given != NULL && (found == NULL || is_handing_on(fn, found))) {
        found = given;
    }
    if (found == NULL && loaded.count > 0 && path != NULL) {
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

void *spw_intercept_library_function(enum spw_fn fn, const void *caller)
{
    size_t hash = (size_t)(spw_hash_word((uintptr_t)caller) >> 32) % BUCKETS;
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

void *spw_intercept_library_substitute(enum spw_fn fn, void *found)
{
    struct copies loaded = {.name = libraries[fn]};
    void *given = NULL;

    (void)spw_loader_iterate(visit, &loaded);
    if (loaded.count <= 1 && hold(found)) {
        (void)atomic_compare_exchange_strong(&known.given[fn], &given, found);
    }
    return atomic_load_explicit(&known.given[fn], memory_order_acquire) == found
               ? spw_intercept_entry_address(fn)
               : found;
}

bool spw_intercept_library_has(enum spw_fn fn)
{
    return libraries[fn] != NULL;
}
