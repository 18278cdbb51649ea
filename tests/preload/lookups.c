/* Calls dlsym and dlvsym in every way. Prints the names of libraries instead of addresses, so the
 * output is the same with and without spillway. */
#include <dlfcn.h>
#include <string.h>

#include "check.h"

/* The first version of the C library. */
#if defined(__aarch64__)
#    define OLDEST "GLIBC_2.17"
#else
#    define OLDEST "GLIBC_2.2.5"
#endif

/* The file name of the library that contains an address. */
static const char *home(void *address)
{
    Dl_info info;

    if (address == NULL) {
        return "nowhere";
    }
    if (dladdr(address, &info) == 0 || info.dli_fname == NULL) {
        return "unknown";
    }

    const char *slash = strrchr(info.dli_fname, '/');

    return slash == NULL ? info.dli_fname : slash + 1;
}

static void show(const char *what, void *address)
{
    const char *error = dlerror();

    printf("%s: %s%s\n", what, home(address), error == NULL ? "" : ", with an error text");
}

/* The preloaded libraries of layer.c define spw_test_layer; each forwards to the next one. */
static void show_chain(void)
{
    int (*layer)(void) = NULL;

    *(void **)&layer = dlsym(RTLD_DEFAULT, "spw_test_layer");
    (void)dlerror();
    for (int i = 0; i < 3; i++) {
        printf("layers: %d\n", layer == NULL ? 0 : layer());
    }
}

int main(void)
{
    void *libc = dlopen("libc.so.6", RTLD_NOW);
    void *libm = dlopen("libm.so.6", RTLD_NOW | RTLD_LOCAL);

    HOLD(libc != NULL && libm != NULL);
    (void)dlerror();
    show("default, malloc", dlsym(RTLD_DEFAULT, "malloc"));
    show("next, malloc", dlsym(RTLD_NEXT, "malloc"));
    show("next, malloc, again", dlsym(RTLD_NEXT, "malloc"));
    show("handle, malloc", dlsym(libc, "malloc"));
    show("handle, cos", dlsym(libm, "cos"));
    show("handle without it, cuInit", dlsym(libc, "cuInit"));
    show("versioned, cuInit", dlvsym(libc, "cuInit", "GLIBC_2.2.5"));
    show("default, unknown", dlsym(RTLD_DEFAULT, "spw_test_no_such_symbol"));
    show("next, unknown", dlsym(RTLD_NEXT, "spw_test_no_such_symbol"));
    show("handle, empty name", dlsym(libc, ""));
    show("versioned, dlsym", dlvsym(libc, "dlsym", "GLIBC_2.34"));
    show("versioned, default, malloc", dlvsym(RTLD_DEFAULT, "malloc", "GLIBC_2.2.5"));
    show("versioned, next, malloc", dlvsym(RTLD_NEXT, "malloc", "GLIBC_2.2.5"));
    show("versioned, next, dlvsym", dlvsym(RTLD_NEXT, "dlvsym", "GLIBC_2.34"));
    show("versioned, next, dlsym", dlvsym(RTLD_NEXT, "dlsym", OLDEST));
    show("versioned, default, cuInit", dlvsym(RTLD_DEFAULT, "cuInit", "GLIBC_2.34"));
    show("versioned, default, unknown", dlvsym(RTLD_DEFAULT, "cuNoSuchThing", "GLIBC_2.34"));
    show("versioned, no such version", dlvsym(libc, "malloc", "GLIBC_1.0"));
    show_chain();
    return 0;
}
