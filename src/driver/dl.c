#include "driver/dl.h"

#include "driver/libc.h"

#include <dlfcn.h>
#include <link.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

typedef void *dlsym_function(void *handle, const char *name);
typedef void *dlvsym_function(void *handle, const char *name, const char *version);

enum { BEHIND_MOST = 8 };

/* Addresses that were looked up. Threads that race find the same addresses. */
static struct {
    _Atomic(void *) symbol, symbol_version; /* of the C library: dlsym, dlvsym */
    _Atomic(void *) hook;                   /* an interposer's dlsym; see spw_driver_dl_hook */
    _Atomic bool has_hook;                  /* `hook` was looked up; it may be NULL */
    _Atomic(void *) behind[BEHIND_MOST];    /* the objects of interposers; NULL ends the list */
} known;

/* Looks a function up once. */
static void *real(_Atomic(void *) *place, const char *name)
{
    void *found = atomic_load_explicit(place, memory_order_relaxed);

    if (found == NULL) {
        found = spw_driver_libc_function(name);
        atomic_store_explicit(place, found, memory_order_relaxed);
    }
    return found;
}

void *spw_driver_dl_symbol_address(void)
{
    return real(&known.symbol, "dlsym");
}

void *spw_driver_dl_symbol_version_address(void)
{
    return real(&known.symbol_version, "dlvsym");
}

void *spw_driver_dl_symbol(void *handle, const char *name)
{
    void *found = ((dlsym_function *)(uintptr_t)spw_driver_dl_symbol_address())(handle, name);

    /* Prevents a tail call: the real function must see a return address in this object. */
    __asm__ volatile("" : "+r"(found));
    return found;
}

void *spw_driver_dl_symbol_version(void *handle, const char *name, const char *version)
{
    void *found = ((dlvsym_function *)(uintptr_t)spw_driver_dl_symbol_version_address())(
        handle, name, version);

    __asm__ volatile("" : "+r"(found));
    return found;
}

/* Looks up a symbol in the loaded object at `path`, and in the libraries that it was linked
 * with. */
static void *symbol_of(const char *path, const char *name)
{
    void *handle = dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
    void *found = NULL;

    if (handle != NULL) {
        found = spw_driver_dl_symbol(handle, name);
        (void)dlclose(handle);
    }
    return found;
}

/* ---- interposers behind this object ---- */

static void *object_of(const void *code)
{
    Dl_info info;

    return dladdr(code, &info) != 0 ? info.dli_fbase : NULL;
}

static void note_behind(void *object)
{
    for (int i = 0; i < BEHIND_MOST; i++) {
        void *other = NULL;

        if (atomic_compare_exchange_strong(&known.behind[i], &other, object) || other == object) {
            return;
        }
    }
}

bool spw_driver_dl_is_behind(const void *code)
{
    void *object = atomic_load(&known.behind[0]) != NULL ? object_of(code) : NULL;

    for (int i = 0; object != NULL && i < BEHIND_MOST; i++) {
        if (atomic_load(&known.behind[i]) == object) {
            return true;
        }
    }
    return false;
}

const char *spw_driver_dl_behind(void)
{
    void *object = atomic_load(&known.behind[0]);
    Dl_info info;

    return object != NULL && dladdr(object, &info) != 0 ? info.dli_fname : NULL;
}

void *spw_driver_dl_hook(void)
{
    void *found;

    if (!atomic_load_explicit(&known.has_hook, memory_order_acquire)) {
        found = spw_driver_dl_symbol(RTLD_NEXT, "dlsym");
        if (found != NULL && object_of(found) == object_of(spw_driver_dl_symbol_address())) {
            found = NULL;
        }
        atomic_store(&known.hook, found);
        atomic_store_explicit(&known.has_hook, true, memory_order_release);
    }
    return atomic_load_explicit(&known.hook, memory_order_relaxed);
}

/* True if the program was linked with the driver. Then the driver is in the global scope behind
 * this object, and the next function that an interposer finds is the driver's. */
static bool is_linked(const void *driver)
{
    static const char *const names[] = {"cuInit",           "cuDriverGetVersion",
                                        "cuDeviceGetCount", "cuGetExportTable",
                                        "cuFuncGetName",    "cuDeviceGetLuid"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        void *next = spw_driver_dl_symbol(RTLD_NEXT, names[i]);

        if (next != NULL && object_of(next) == driver) {
            return true;
        }
    }
    return false;
}

void *spw_driver_dl_symbol_behind(void *library, const char *name)
{
    void *own = spw_driver_dl_symbol(library, name), *found = own, *next;
    dlsym_function *hook = (dlsym_function *)(uintptr_t)spw_driver_dl_hook();
    const void *here = object_of((const void *)(uintptr_t)spw_driver_dl_symbol_behind);

    if (own == NULL) {
        return NULL;
    }
    if (hook != NULL) {
        found = hook(library, name);
    }
    /* An interposer's own lookup may return the function of this object, which comes first. */
    if (found == NULL || found == own || object_of(found) == here) {
        next = spw_driver_dl_symbol(RTLD_NEXT, name);
        found = next != NULL && (hook != NULL || is_linked(object_of(own))) ? next : own;
    }
    if (object_of(found) != object_of(own)) {
        note_behind(object_of(found));
    }
    return found;
}

/* ---- the real functions of other libraries ---- */

void *spw_driver_dl_symbol_anywhere(const char *name)
{
    return spw_driver_dl_symbol(RTLD_DEFAULT, name);
}

void *spw_driver_dl_symbol_next(const char *name)
{
    void *found = spw_driver_dl_symbol(RTLD_NEXT, name);
    void *current = NULL;
    Dl_info info;

    if (found != NULL && dladdr(found, &info) != 0 && info.dli_fname != NULL) {
        current = symbol_of(info.dli_fname, name);
    }
    return current != NULL ? current : found;
}

void *spw_driver_dl_symbol_for(const void *caller, const char *name)
{
    struct link_map *map = NULL;
    Dl_info info;

    /* The program itself has an empty name; its symbols are in the global scope. */
    if (dladdr1(caller, &info, (void **)&map, RTLD_DL_LINKMAP) == 0 || map->l_name[0] == 0) {
        return NULL;
    }
    return symbol_of(map->l_name, name);
}
