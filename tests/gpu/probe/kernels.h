/* The kernels, from kernels.ptx, and from kernels_sm90.ptx on devices that have its instructions.
 * Those named spw_ are built into the simulated GPU; the others do nothing there. */
#pragma once

#include "probe.h"

/* The texts, made from the .ptx files when the probe is built. */
extern const char kernels_ptx[];
extern const char kernels_sm90_ptx[];

/* Loads the kernels; ends the process if the driver does not take them. */
void kernels_load(void);

/* The kernel of that name, which must stay valid; NULL for one that needs a newer device. */
CUfunction kernels_find(const char *name);

/* Launches a kernel of `blocks` times 256 threads with its parameters. */
void kernels_launch(const char *name, unsigned int blocks, CUstream stream, void **params);

/* p[i] = value; p[i] += value; dst[i] = src[i], of 32-bit words. They return at once. */
void kernels_fill(CUdeviceptr p, size_t words, uint32_t value, CUstream stream);
void kernels_add(CUdeviceptr p, size_t words, uint32_t value, CUstream stream);
void kernels_copy(CUdeviceptr dst, CUdeviceptr src, size_t words, CUstream stream);

/* The number of words that differ from `value`; waits. */
uint64_t kernels_differ(CUdeviceptr p, size_t words, uint32_t value);

/* Runs fill and check once, so that later launches need no more memory. */
void kernels_warm_up(void);

/* A kernel that runs until it is released, and a thread that releases it after some time, so that
 * a call that waits for the kernel ends. One at a time. */
void kernels_spin(CUstream stream, double microseconds);

/* Releases it now and waits for the stream. True if it ran until now. */
bool kernels_release(CUstream stream);
