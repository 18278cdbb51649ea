/* Threads that allocate and free at the same instant, and the figures that must be left in the end.
 *
 * The other acts spend most of their time in the driver, so that two threads are hardly ever in
 * spillway's pool at once. Here they do nothing but allocate and free small blocks, for which the
 * pool does not call the driver. A timer stops each thread at random instructions for a moment, in
 * which the others go on, so that what a lock must keep apart meets on a busy processor, too. */
#include <dlfcn.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <spillway.h>

#include "chaos.h"
#include "errors.h"

enum {
    THREADS = 4,
    STREAMS_EACH = 2,
    ROUNDS = 20000,
    HELD = 32,
    SLOTS = 4096,
    STOP_SIGNAL = SIGUSR2
};
enum { STOP_AFTER_NS = 50000, STOP_NS = 20000 };

static const int64_t most_ns = 100 * 1000 * 1000;

static _Atomic int arrived;
static _Atomic CUdeviceptr held[SLOTS]; /* addresses that threads have, as far as there is room */

static int64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

/* Waits for the other threads, but not for ever: one may have failed before. */
static void meet(void)
{
    int64_t end = now_ns() + most_ns;

    atomic_fetch_add(&arrived, 1);
    while (atomic_load(&arrived) < THREADS && now_ns() < end) {
        sched_yield();
    }
}

/* ---- stops ---- */

/* The calling thread's timer. It is set again after each stop, which may take long. */
static _Thread_local timer_t timer;

static void set_timer(void)
{
    const struct itimerspec time = {.it_value.tv_nsec = STOP_AFTER_NS};

    (void)timer_settime(timer, 0, &time, NULL);
}

static void stop(int number)
{
    const struct timespec pause = {.tv_nsec = STOP_NS};
    int saved = errno;

    nanosleep(&pause, NULL);
    set_timer();
    errno = saved;
    (void)number;
}

/* Begins to stop the calling thread again and again. False: there are no timers. */
static bool start_stops(void)
{
    const struct sigaction action = {.sa_handler = stop, .sa_flags = SA_RESTART};
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = STOP_SIGNAL};

    event._sigev_un._tid = (pid_t)syscall(SYS_gettid);
    if (sigaction(STOP_SIGNAL, &action, NULL) != 0 ||
        timer_create(CLOCK_MONOTONIC, &event, &timer) != 0) {
        return false;
    }
    set_timer();
    return true;
}

/* ---- allocations and frees ---- */

static _Atomic CUdeviceptr *slot_of(CUdeviceptr address)
{
    return &held[(address >> 9) % SLOTS];
}

static CUdeviceptr take(size_t bytes, CUstream stream)
{
    CUdeviceptr address = 0;

    if (!ok(cuMemAllocAsync(&address, bytes, stream), "cuMemAllocAsync")) {
        return 0;
    }
    if (atomic_exchange(slot_of(address), address) == address) {
        finding("two threads have the block at %#llx", (unsigned long long)address);
    }
    return address;
}

static void give(CUdeviceptr address, CUstream stream)
{
    CUdeviceptr expected = address;

    (void)atomic_compare_exchange_strong(slot_of(address), &expected, 0);
    if (!ok(cuMemFreeAsync(address, stream), "cuMemFreeAsync")) {
        atomic_fetch_add(&program.losses, 1);
    }
}

static void allocate_and_free(const CUstream streams[], int count)
{
    int64_t end = now_ns() + most_ns;
    CUdeviceptr blocks[HELD];

    for (int round = 0; round < ROUNDS && now_ns() < end; round++) {
        CUstream stream = streams[round % count];

        for (int i = 0; i < HELD; i++) {
            blocks[i] = take((size_t)512 << (round + i) % 6, stream);
        }
        for (int i = 0; i < HELD; i++) {
            int scattered = (i * 13 + round) % HELD;

            if (blocks[scattered] != 0) {
                give(blocks[scattered], stream);
            }
        }
    }
}

static void *take_part(void *unused)
{
    CUstream streams[STREAMS_EACH] = {NULL};
    bool stops;

    if (!ok(cuCtxSetCurrent(program.contexts[0]), "cuCtxSetCurrent")) {
        return unused;
    }
    for (int i = 0; i < STREAMS_EACH; i++) {
        if (!ok(cuStreamCreate(&streams[i], CU_STREAM_NON_BLOCKING), "cuStreamCreate")) {
            streams[i] = NULL;
        }
    }
    meet();
    stops = start_stops();
    allocate_and_free(streams, STREAMS_EACH);
    if (stops) {
        (void)timer_delete(timer);
    }
    for (int i = 0; i < STREAMS_EACH; i++) {
        if (streams[i] != NULL) {
            (void)ok(cuStreamDestroy(streams[i]), "cuStreamDestroy");
        }
    }
    return unused;
}

void storm(void)
{
    pthread_t threads[THREADS];
    int count = 0;

    while (count < THREADS && pthread_create(&threads[count], NULL, take_part, NULL) == 0) {
        count++;
    }
    for (int i = 0; i < count; i++) {
        pthread_join(threads[i], NULL);
    }
}

/* The figures of a device; false without spillway. */
static bool figures_of(int device, struct spillway_stats *ret_figures)
{
    int (*stats)(int, struct spillway_stats *);

    *(void **)&stats = dlsym(RTLD_DEFAULT, "spillway_stats");
    *ret_figures = (struct spillway_stats){.size = sizeof(*ret_figures)};
    return stats != NULL && stats(device, ret_figures) == 0;
}

void trim(int device)
{
    enum { TRIES = 200, PAUSE_US = 1000 };
    struct spillway_stats figures;
    CUmemoryPool pool;

    if (!ok(cuDeviceGetDefaultMemPool(&pool, device), "cuDeviceGetDefaultMemPool")) {
        return;
    }
    for (int i = 0; i < TRIES && ok(cuMemPoolTrimTo(pool, 0), "cuMemPoolTrimTo"); i++) {
        if (!figures_of(device, &figures) || figures.live_bytes > 0 || figures.host_bytes == 0) {
            return;
        }
        usleep(PAUSE_US);
    }
}

void check_books(void)
{
    struct spillway_stats figures;

    for (int i = 0; i < options.devices && atomic_load(&program.losses) == 0; i++) {
        if (figures_of(i, &figures) &&
            (figures.live_bytes != 0 || figures.allocs != figures.frees)) {
            finding("device %d: %llu bytes are live, %llu allocations, %llu frees", i,
                    (unsigned long long)figures.live_bytes, (unsigned long long)figures.allocs,
                    (unsigned long long)figures.frees);
        }
    }
}
