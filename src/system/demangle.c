#include "system/demangle.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* By the Itanium C++ ABI, `buffer` and `length` may be NULL; then malloc allocates the result. */
typedef char *demangle_function(const char *mangled, char *buffer, size_t *length, int *ret_status);

static struct {
    _Atomic(demangle_function *) demangle; /* NULL: not found yet */
    atomic_bool loaded;                    /* loading the C++ library was tried */
} known;

static bool keep(void *library)
{
    void *found = library == NULL ? NULL : dlsym(library, "__cxa_demangle");

    if (found != NULL) {
        atomic_store(&known.demangle, (demangle_function *)(uintptr_t)found);
    }
    return found != NULL;
}

bool spw_demangle_find(bool load)
{
    static const char library[] = "libstdc++.so.6";

    if (atomic_load(&known.demangle) != NULL) {
        return true;
    }
    /* The global scope covers other C++ libraries, but not the libraries of a plugin. The handle
     * stays open: the demangler must not be unloaded. */
    if (keep(dlopen(NULL, RTLD_LAZY | RTLD_LOCAL)) ||
        keep(dlopen(library, RTLD_LAZY | RTLD_LOCAL | RTLD_NOLOAD))) {
        return true;
    }
    return load && !atomic_exchange(&known.loaded, true) &&
           keep(dlopen(library, RTLD_LAZY | RTLD_LOCAL));
}

bool spw_demangle_is_mangled(const char *name)
{
    return strncmp(name, "_Z", 2) == 0;
}

char *spw_demangle(const char *name)
{
    demangle_function *demangle = atomic_load(&known.demangle);
    int status;

    return demangle != NULL && spw_demangle_is_mangled(name)
               ? demangle(name, /* buffer */ NULL, /* length */ NULL, &status)
               : NULL;
}
