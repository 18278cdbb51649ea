#include "system/stack.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The stack of this thread; both 0 when it is not known. */
static _Thread_local struct bounds {
    bool asked;
    uintptr_t low, high;
} bounds __attribute__((tls_model("initial-exec")));

static __attribute__((noinline)) void ask(void)
{
    pthread_attr_t attributes;
    size_t bytes, guard;
    void *low;

    bounds.asked = true;
    if (getpid() == (pid_t)syscall(SYS_gettid) ||
        pthread_getattr_np(pthread_self(), &attributes) != 0) {
        return;
    }
    if (pthread_attr_getstack(&attributes, &low, &bytes) == 0 &&
        pthread_attr_getguardsize(&attributes, &guard) == 0) {
        bounds.low = (uintptr_t)low + guard;
        bounds.high = (uintptr_t)low + bytes;
    }
    (void)pthread_attr_destroy(&attributes);
}

size_t spw_stack_left(void)
{
    uintptr_t here = (uintptr_t)__builtin_frame_address(0);

    if (!bounds.asked) {
        ask();
    }
    return here >= bounds.low && here < bounds.high ? here - bounds.low : SIZE_MAX;
}
