/* One of a chain of preloaded libraries: adds one to the next one's result. Built twice. */
#include <dlfcn.h>

__attribute__((visibility("default"))) int spw_test_layer(void);

int spw_test_layer(void)
{
    int (*next)(void) = 0;

    *(void **)&next = dlsym(RTLD_NEXT, "spw_test_layer");
    return next == 0 ? 1 : next() + 1;
}
