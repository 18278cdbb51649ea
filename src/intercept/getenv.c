/* The exported getenv. It selects PyTorch's allocator backend if the user has not.
 *
 * PyTorch reads its two allocator variables while libc10_cuda is loaded. If neither is set, both
 * read as the backend that calls the driver for every tensor. The environment is not changed, and
 * every other name costs a comparison of two characters.
 *
 * A sanitizer's runtime calls getenv before it has started, so this file is compiled without a
 * sanitizer. No locks. */
#include "driver/dl.h"
#include "track/process.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static const char new_name[] = "PYTORCH_ALLOC_CONF";
static const char old_name[] = "PYTORCH_CUDA_ALLOC_CONF";
static char answer[] = "backend:cudaMallocAsync";

typedef char *getenv_function(const char *name);

static _Atomic(getenv_function *) real_getenv;

static getenv_function *find_real(void)
{
    getenv_function *found =
        (getenv_function *)(uintptr_t)spw_driver_dl_symbol(RTLD_NEXT, "getenv");

    atomic_store_explicit(&real_getenv, found, memory_order_relaxed);
    return found;
}

static inline getenv_function *real(void)
{
    getenv_function *known = atomic_load_explicit(&real_getenv, memory_order_relaxed);

    return SPW_LIKELY(known != NULL) ? known : find_real();
}

/* True if spillway may select the backend: it is on, and the user chose no other mode. */
static bool wanted(void)
{
    int mode = spw_option_get(SPW_OPT_SPILLWAY_MODE, NULL, 0).word;

    return !spw_track_off() && (mode == SPW_MODE_TENSOR || mode == SPW_MODE_AUTO);
}

static char *answer_torch(const char *name)
{
    const char *settings = real()(new_name);

    if (settings == NULL) {
        settings = real()(old_name);
    }
    if (settings == NULL && wanted()) {
        atomic_store(&spw_process.torch, SPW_TORCH_ANSWERED);
        return answer;
    }
    atomic_store(&spw_process.torch, settings != NULL && strstr(settings, "cudaMallocAsync") != NULL
                                         ? SPW_TORCH_SAME
                                         : SPW_TORCH_OTHER);
    return real()(name);
}

SPW_EXPORT char *getenv(const char *name)
{
    if (SPW_UNLIKELY(name[0] == 'P' && name[1] == 'Y') &&
        (strcmp(name, new_name) == 0 || strcmp(name, old_name) == 0)) {
        return answer_torch(name);
    }
    return real()(name);
}
