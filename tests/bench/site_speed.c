/* Nanoseconds of a captured call site, below as many native frames as one likes.
 *
 * Each function below calls, at the end of a chain of `levels` frames, what it measures; the chain
 * takes another way through four functions for each number `path`. */
#include "site_probe.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

/* For bench_sites.py: means or medians below `frames` native frames, and how many frames of each
 * kind the last of them had. speed_thread does the same on a thread of its own, where there is no
 * Python: `figures` begins with `frames` and becomes first sight, repeat, unw_backtrace, backtrace
 * and the native frames. */
PROBE double speed_repeat(int frames);
PROBE double speed_first(int frames);
PROBE double speed_unwind(int frames);
PROBE double speed_backtrace(int frames);
PROBE int speed_native(void);
PROBE int speed_python(void);
PROBE void speed_thread(double *figures);

enum { REPEATS = 200000, PLAIN = 20000, PATHS = 1000, FRAMES = 64 };

typedef void work(void);

static _Thread_local work *at_the_end;
static double result, samples[PATHS];
static int sample_count, native_frames, python_frames;
static int (*unwind)(void **, int);

static double now_ns(void)
{
    struct timespec time;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

/* ---- the chain ---- */

static __attribute__((noinline)) void level_a(unsigned path, int levels);
static __attribute__((noinline)) void level_b(unsigned path, int levels);
static __attribute__((noinline)) void level_c(unsigned path, int levels);
static __attribute__((noinline)) void level_d(unsigned path, int levels);

static void (*volatile const ways[])(unsigned, int) = {level_a, level_b, level_c, level_d};

#define LEVEL(name)                                                                                \
    static void name(unsigned path, int levels)                                                    \
    {                                                                                              \
        if (levels > 0) {                                                                          \
            ways[path & 3](path >> 2, levels - 1);                                                 \
        } else {                                                                                   \
            at_the_end();                                                                          \
        }                                                                                          \
        __asm__ volatile("" ::: "memory"); /* not a jump */                                        \
    }

LEVEL(level_a)
LEVEL(level_b)
LEVEL(level_c)
LEVEL(level_d)

/* ---- what is measured ---- */

static void count(void)
{
    uint64_t addresses[FRAMES];
    char text[1 << 14];
    uint32_t site = probe_capture();

    native_frames = probe_native(site, addresses);
    python_frames = probe_python(site, text, sizeof(text));
}

static void repeat(void)
{
    uint32_t site;

    (void)probe_repeat(10, &site);
    result = probe_repeat(REPEATS, &site);
}

static void first(void)
{
    double begin = now_ns();

    (void)probe_capture();
    samples[sample_count++] = now_ns() - begin;
}

static void nothing(void)
{
    double begin = now_ns();

    samples[sample_count++] = now_ns() - begin;
}

static void by_unwind(void)
{
    void *addresses[FRAMES];
    double begin = now_ns();

    for (int i = 0; i < PLAIN; i++) {
        (void)unwind(addresses, FRAMES);
    }
    result = (now_ns() - begin) / PLAIN;
}

static void by_backtrace(void)
{
    void *addresses[FRAMES];
    double begin = now_ns();

    for (int i = 0; i < PLAIN; i++) {
        (void)backtrace(addresses, FRAMES);
    }
    result = (now_ns() - begin) / PLAIN;
}

/* ---- for the interpreter ---- */

static int compare(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;

    return left < right ? -1 : left > right;
}

static double median(work *what, int levels)
{
    at_the_end = what;
    sample_count = 0;
    for (unsigned path = 1; path <= PATHS; path++) {
        level_a(path, levels);
    }
    qsort(samples, PATHS, sizeof(samples[0]), compare);
    return samples[PATHS / 2];
}

static double mean(work *what, int levels)
{
    at_the_end = what;
    level_a(0, levels);
    return result;
}

/* The number of levels for a stack of `frames` native frames. */
static int levels_for(int frames)
{
    at_the_end = count;
    level_a(0, 4);
    return frames > native_frames ? 4 + frames - native_frames : 4;
}

int speed_native(void)
{
    return native_frames;
}

int speed_python(void)
{
    return python_frames;
}

double speed_repeat(int frames)
{
    int levels = levels_for(frames);

    at_the_end = count;
    level_a(0, levels);
    return mean(repeat, levels);
}

double speed_first(int frames)
{
    int levels = levels_for(frames);
    double none = median(nothing, levels);

    return median(first, levels) - none;
}

double speed_unwind(int frames)
{
    void *library = dlopen("libunwind.so.8", RTLD_NOW | RTLD_LOCAL);

    if (library == NULL) {
        return -1;
    }
    unwind = (int (*)(void **, int))(uintptr_t)dlsym(library, "unw_backtrace");
    return mean(by_unwind, levels_for(frames));
}

double speed_backtrace(int frames)
{
    return mean(by_backtrace, levels_for(frames));
}

static void *run(void *figures)
{
    double *found = figures;
    int frames = (int)found[0];

    found[0] = speed_first(frames);
    found[1] = speed_repeat(frames);
    found[4] = native_frames;
    found[2] = speed_unwind(frames);
    found[3] = speed_backtrace(frames);
    return NULL;
}

void speed_thread(double *figures)
{
    pthread_t thread;

    if (pthread_create(&thread, NULL, run, figures) == 0) {
        (void)pthread_join(thread, NULL);
    }
}
