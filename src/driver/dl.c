#include "driver/dl.h"

#include <dlfcn.h>
#include <link.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

/* The symbol versions of dlsym, newest first: libc since 2.34, libdl before, by architecture. */
static const char *const versions[] = {"GLIBC_2.34", "GLIBC_2.17", "GLIBC_2.2.5"};

typedef void *dlsym_function(void *handle, const char *name);

static dlsym_function *real_dlsym(void)
{
    /* Found once; threads that race find the same. */
    static _Atomic(dlsym_function *) known;
    dlsym_function *found = atomic_load_explicit(&known, memory_order_relaxed);

    for (size_t i = 0; found == NULL && i < sizeof(versions) / sizeof(versions[0]); i++) {
        found = (dlsym_function *)(uintptr_t)dlvsym(RTLD_NEXT, "dlsym", versions[i]);
        atomic_store_explicit(&known, found, memory_order_relaxed);
    }
    return found;
}

void *spw_dl_symbol(void *handle, const char *name)
{
    void *found = real_dlsym()(handle, name);

    /* Not a jump: the real function must see a return address in this object, not our caller's. */
    __asm__ volatile("" : "+r"(found));
    return found;
}

void *spw_dl_symbol_address(void)
{
    return (void *)(uintptr_t)real_dlsym();
}

void *spw_dl_symbol_for(const void *caller, const char *name)
{
    struct link_map *map = NULL;
    Dl_info info;
    void *handle;
    void *found;

    /* The program itself has an empty name; its look-ups go through the global scope. */
    if (dladdr1(caller, &info, (void **)&map, RTLD_DL_LINKMAP) == 0 || map->l_name[0] == 0) {
        return NULL;
    }
    handle = dlopen(map->l_name, RTLD_LAZY | RTLD_NOLOAD);
    if (handle == NULL) {
        return NULL;
    }
    found = spw_dl_symbol(handle, name);
    (void)dlclose(handle);
    return found;
}
