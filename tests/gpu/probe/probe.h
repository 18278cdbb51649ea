/* The probe: sections that ask a driver what no document settles. It uses the driver's interface
 * alone and brings its kernels as PTX, so that it needs no compiler where it runs.
 *
 * Findings go to stdout, one a line: state, subject and value, separated by tabs; findings.py
 * explains the states. A section is one process: an error of the device ends it, and the findings
 * before it are written. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cuda.h>

#define MIB ((size_t)1 << 20)
#define GIB ((size_t)1 << 30)

/* The state of the process; set by probe_open. */
struct probe {
    CUdevice device;
    CUcontext context; /* the primary one */
    bool simulated;    /* the driver is the simulated one: clocks and most kernels mean nothing */
    bool tiny;         /* as little work as shows that a section runs */
    int node;          /* the NUMA node for host memory, -1: none works */
};

extern struct probe probe;

/* Initialises the driver, a context and the kernels. Ends the process if that fails. */
void probe_open(void);

/* Writes one finding. */
__attribute__((format(printf, 3, 4))) void probe_note(const char *state, const char *subject,
                                                      const char *format, ...);

/* A finding "ok" or "wrong". Returns `good`. */
bool probe_verdict(bool good, const char *subject, const char *detail);

/* A figure that comes from a clock; without meaning on the simulated GPU, where it is not given.
 * session.py makes data of it; the units that it knows stand there. */
void probe_time(const char *subject, double value, const char *unit);

/* The same with a subject that is made of parts. */
__attribute__((format(printf, 3, 4))) void probe_measure(double value, const char *unit,
                                                         const char *format, ...);

/* The name of an error. */
const char *probe_error(CUresult result);

/* Ends the process with a finding "failed" unless the call succeeded. */
void probe_must(CUresult result, const char *call, int line);
#define MUST(call) probe_must((call), #call, __LINE__)

/* Microseconds of a steady clock, and a pause of so many. */
double probe_now(void);
void probe_pause(double microseconds);

/* The median of `count` values, which it sorts; and the value below which that share of them is. */
double probe_median(double *values, size_t count);
double probe_quantile(double *values, size_t count, double share);

/* Fewer repetitions in a tiny run. */
size_t probe_repeat(size_t count);

/* A driver function that older drivers lack, or NULL; to be cast to its type. */
typedef void (*probe_function)(void);
probe_function probe_symbol(const char *name);
