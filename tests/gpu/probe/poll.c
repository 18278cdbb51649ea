/* How late a thread learns that a copy has ended, and what waiting costs it, by the way it waits.
 */
#include <stdio.h>
#include <sys/prctl.h>

#include "system/backoff.h"

#include "kernels.h"
#include "memory.h"
#include "sections.h"

#define REPEAT  200
#define BYTES   (5 * MIB + 512 * 1024) /* 100 us over the link */
#define SPIN    200                    /* microseconds before the first pause */
#define PATIENT 5000000000u            /* nanoseconds */

static struct {
    CUstream stream;
    CUevent event, blocking; /* of the copy's end */
    CUdeviceptr from;
    void *to;
} test;

static bool done(void)
{
    return cuEventQuery(test.event) != CUDA_ERROR_NOT_READY;
}

static void spin(void)
{
    while (!done()) {
    }
}

/* As the library waits (src/system/backoff.h). */
static void back_off(void)
{
    struct spw_backoff backoff = {.limit_ns = PATIENT};

    while (!done() && spw_backoff_pause(&backoff)) {
    }
}

static void spin_then_back_off(void)
{
    const double end = probe_now() + SPIN;

    while (probe_now() < end) {
        if (done()) {
            return;
        }
    }
    back_off();
}

static void back_off_exactly(void)
{
    int slack = prctl(PR_GET_TIMERSLACK);

    prctl(PR_SET_TIMERSLACK, 1UL);
    back_off();
    prctl(PR_SET_TIMERSLACK, slack > 0 ? (unsigned long)slack : 0UL);
}

static void synchronize_event(void)
{
    MUST(cuEventSynchronize(test.event));
}

static void synchronize_blocking(void)
{
    MUST(cuEventSynchronize(test.blocking));
}

static void synchronize_stream(void)
{
    MUST(cuStreamSynchronize(test.stream));
}

static double worked(void)
{
    return (double)spw_clock_read(CLOCK_THREAD_CPUTIME_ID) / 1e3;
}

/* One copy: microseconds from its submission to the thread's knowledge, and those of CPU time. */
static double wait_once(void (*wait)(void), double *ret_worked)
{
    double begin = probe_now();

    MUST(cuMemcpyDtoHAsync(test.to, test.from, BYTES, test.stream));
    MUST(cuEventRecord(test.event, test.stream));
    MUST(cuEventRecord(test.blocking, test.stream));
    double work = worked();
    wait();
    *ret_worked = worked() - work;
    double took = probe_now() - begin;
    MUST(cuStreamSynchronize(test.stream));
    return took;
}

void section_poll(const char *argument)
{
    static const struct {
        const char *name;
        void (*wait)(void);
    } ways[] = {{"spin on cuEventQuery", spin},
                {"back off", back_off},
                {"back off without timer slack", back_off_exactly},
                {"spin 200 us, then back off", spin_then_back_off},
                {"cuEventSynchronize", synchronize_event},
                {"cuEventSynchronize, blocking event", synchronize_blocking},
                {"cuStreamSynchronize", synchronize_stream}};
    static double took[REPEAT], work[REPEAT];
    const size_t repeat = probe_repeat(REPEAT);
    double first = 0; /* of the spinning thread, which knows at once */
    char subject[96];

    MUST(cuStreamCreate(&test.stream, CU_STREAM_NON_BLOCKING));
    MUST(cuEventCreate(&test.event, CU_EVENT_DISABLE_TIMING));
    MUST(cuEventCreate(&test.blocking, CU_EVENT_DISABLE_TIMING | CU_EVENT_BLOCKING_SYNC));
    MUST(cuMemAlloc(&test.from, BYTES));
    MUST(cuMemHostAlloc(&test.to, BYTES, 0));
    kernels_fill(test.from, BYTES / 4, 3, NULL);
    MUST(cuCtxSynchronize());
    wait_once(synchronize_stream, &work[0]);
    for (size_t way = 0; way < sizeof(ways) / sizeof(ways[0]); way++) {
        for (size_t i = 0; i < repeat; i++) {
            took[i] = wait_once(ways[way].wait, &work[i]);
        }
        double median = probe_median(took, repeat);
        first = way == 0 ? median : first;
        probe_measure(median, "us", "%s: from submission", ways[way].name);
        probe_measure(median - first, "us", "%s: later than spinning", ways[way].name);
        probe_measure(probe_quantile(took, repeat, 0.9) - first, "us",
                      "%s: later than spinning, p90", ways[way].name);
        probe_measure(probe_median(work, repeat), "us", "%s: CPU time", ways[way].name);
    }
    snprintf(subject, sizeof(subject), "%u", *(const uint32_t *)test.to);
    probe_verdict(*(const uint32_t *)test.to == 3, "the copy's content", subject);
}
