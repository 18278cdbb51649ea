/* A library preloaded before libibverbs with the same name; it looks up the real one by dlsym. */
#include <dlfcn.h>

#include "check.h"
#include "driver/register_api.h"

__attribute__((visibility("default"))) struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr,
                                                                 size_t length, int access)
{
    static __typeof__(ibv_reg_mr) *behind;

    if (behind == NULL) {
        const char *path = getenv("SPW_TEST_VERBS");

        HOLD(path != NULL);
        *(void **)&behind = dlsym(dlopen(path, RTLD_NOW), "ibv_reg_mr");
    }
    puts("handed on");
    return behind(pd, addr, length, access + 1);
}
