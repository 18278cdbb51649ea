#include "probe.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kernels.h"
#include "memory.h"

struct probe probe = {.node = -1};

void probe_open(void)
{
    probe.simulated = dlsym(RTLD_DEFAULT, "spillway_sim_version") != NULL;
    MUST(cuInit(0));
    MUST(cuDeviceGet(&probe.device, 0));
    MUST(cuDevicePrimaryCtxRetain(&probe.context, probe.device));
    MUST(cuCtxSetCurrent(probe.context));
    kernels_load();
}

void probe_note(const char *state, const char *subject, const char *format, ...)
{
    va_list values;

    printf("%s\t%s\t", state, subject);
    va_start(values, format);
    vprintf(format, values);
    va_end(values);
    putchar('\n');
    fflush(stdout);
}

bool probe_verdict(bool good, const char *subject, const char *detail)
{
    probe_note(good ? "ok" : "wrong", subject, "%s", detail);
    return good;
}

void probe_measure(double value, const char *unit, const char *format, ...)
{
    char subject[160];
    va_list values;

    va_start(values, format);
    vsnprintf(subject, sizeof(subject), format, values);
    va_end(values);
    probe_time(subject, value, unit);
}

void probe_time(const char *subject, double value, const char *unit)
{
    if (probe.simulated) {
        probe_note("unmeasurable", subject, "not measurable on the simulated GPU (%s)", unit);
    } else {
        probe_note("figure", subject, "%.4g %s", value, unit);
    }
}

const char *probe_error(CUresult result)
{
    const char *name = NULL;

    return cuGetErrorName(result, &name) == CUDA_SUCCESS && name != NULL ? name : "unknown error";
}

void probe_must(CUresult result, const char *call, int line)
{
    if (result != CUDA_SUCCESS) {
        probe_note("failed", call, "%s, line %d", probe_error(result), line);
        exit(1);
    }
}

double probe_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

void probe_pause(double microseconds)
{
    struct timespec pause = {(time_t)(microseconds / 1e6),
                             (long)((microseconds - 1e6 * (long)(microseconds / 1e6)) * 1e3)};

    nanosleep(&pause, NULL);
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;

    return x < y ? -1 : x > y;
}

double probe_quantile(double *values, size_t count, double share)
{
    qsort(values, count, sizeof(*values), compare);
    return count > 0 ? values[(size_t)(share * (double)(count - 1) + 0.5)] : 0;
}

double probe_median(double *values, size_t count)
{
    qsort(values, count, sizeof(*values), compare);
    return count > 0 ? values[count / 2] : 0;
}

size_t probe_repeat(size_t count)
{
    return probe.tiny ? (count < 3 ? count : 3) : count;
}

probe_function probe_symbol(const char *name)
{
    void *address = dlsym(RTLD_DEFAULT, name);
    probe_function function;

    memcpy(&function, &address, sizeof(function));
    return function;
}
