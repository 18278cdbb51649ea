/* A preloaded interposer: adds one to the result of the next one. Built twice, for a chain. */
#include <dlfcn.h>

__attribute__((visibility("default"))) int spw_test_layer(void);

int spw_test_layer(void)
{
    int (*next)(void) = 0;

    *(void **)&next = dlsym(RTLD_NEXT, "spw_test_layer");
    return next == 0 ? 1 : next() + 1;
}
