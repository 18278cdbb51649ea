#include "driver/dl.h"

#include "driver/libc.h"

#include <dlfcn.h>
#include <link.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

typedef void *dlsym_function(void *handle, const char *name);
typedef void *dlvsym_function(void *handle, const char *name, const char *version);

/* Looked up once. Threads that race find the same address. */
static void *real(_Atomic(void *) *known, const char *name)
{
    void *found = atomic_load_explicit(known, memory_order_relaxed);

    if (found == NULL) {
        found = spw_driver_libc_function(name);
        atomic_store_explicit(known, found, memory_order_relaxed);
    }
    return found;
}

void *spw_driver_dl_symbol_address(void)
{
    static _Atomic(void *) known;

    return real(&known, "dlsym");
}

void *spw_driver_dl_symbol_version_address(void)
{
    static _Atomic(void *) known;

    return real(&known, "dlvsym");
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
