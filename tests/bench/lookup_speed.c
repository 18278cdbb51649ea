/* Nanoseconds of look-ups that do not concern spillway, one "name number" line each. */
#include <dlfcn.h>
#include <stdio.h>
#include <time.h>

enum { ROUNDS = 2000000 };

/* CPU time: other work on the machine would disturb wall time. */
static double now_ns(void)
{
    struct timespec time;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static void *volatile sink;

static void time_dlsym(const char *what, void *handle, const char *symbol)
{
    double begin = now_ns();

    for (int i = 0; i < ROUNDS; i++) {
        sink = dlsym(handle, symbol);
    }
    printf("dlsym %s %.3f\n", what, (now_ns() - begin) / ROUNDS);
}

int main(void)
{
    void *libc = dlopen("libc.so.6", RTLD_NOW);

    if (libc == NULL) {
        return 1;
    }
    time_dlsym("of a handle", libc, "malloc");
    return 0;
}
