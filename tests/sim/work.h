/* Helpers of the tests of streams, kernels and graphs: a context of its own for each test, so that
 * one may end with a sticky error, and the built-in kernels. */
#pragma once

#include <string.h>

#include "check.h"

/* The state that each test starts with. */
struct work {
    CUcontext ctx;
    CUmodule module;
    CUfunction fill, check, copy, add, spin, other;
};

static inline int setup_work(void **state)
{
    static struct work work;

    *state = &work;
    if (cuInit(0) != CUDA_SUCCESS || cuCtxCreate(&work.ctx, NULL, 0, 0) != CUDA_SUCCESS ||
        cuModuleLoadData(&work.module, "any image will do") != CUDA_SUCCESS ||
        cuModuleGetFunction(&work.fill, work.module, "spw_fill") != CUDA_SUCCESS ||
        cuModuleGetFunction(&work.check, work.module, "spw_check") != CUDA_SUCCESS ||
        cuModuleGetFunction(&work.copy, work.module, "spw_copy") != CUDA_SUCCESS ||
        cuModuleGetFunction(&work.add, work.module, "spw_add") != CUDA_SUCCESS ||
        cuModuleGetFunction(&work.spin, work.module, "spw_spin") != CUDA_SUCCESS ||
        cuModuleGetFunction(&work.other, work.module, "something_else") != CUDA_SUCCESS) {
        return -1;
    }
    return 0;
}

static inline int end_work(void **state)
{
    const struct work *work = *state;

    return cuCtxDestroy(work->ctx) == CUDA_SUCCESS ? 0 : -1;
}

#define WORK_TEST(function) cmocka_unit_test_setup_teardown(function, setup_work, end_work)

static inline CUresult launch(CUfunction function, CUstream stream, void **params)
{
    return cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, stream, params, NULL);
}

static inline CUresult launch_fill(const struct work *work, CUstream stream, CUdeviceptr p,
                                   size_t n_words, uint32_t value)
{
    void *params[] = {&p, &n_words, &value};

    return launch(work->fill, stream, params);
}

static inline CUresult launch_add(const struct work *work, CUstream stream, CUdeviceptr p,
                                  size_t n_words, uint32_t value)
{
    void *params[] = {&p, &n_words, &value};

    return launch(work->add, stream, params);
}

static inline CUresult launch_copy(const struct work *work, CUstream stream, CUdeviceptr dst,
                                   CUdeviceptr src, size_t n_words)
{
    void *params[] = {&dst, &src, &n_words};

    return launch(work->copy, stream, params);
}

static inline CUresult launch_check(const struct work *work, CUstream stream, CUdeviceptr p,
                                    size_t n_words, uint32_t value, CUdeviceptr bad_count)
{
    void *params[] = {&p, &n_words, &value, &bad_count};

    return launch(work->check, stream, params);
}

static inline CUresult launch_spin(const struct work *work, CUstream stream, CUdeviceptr flag)
{
    void *params[] = {&flag};

    return launch(work->spin, stream, params);
}

/* A word in page-locked memory, 0: spins wait for it, and the test sets it. */
static inline uint32_t *new_flag(void)
{
    void *flag = NULL;

    OK(cuMemHostAlloc(&flag, sizeof(uint32_t), 0));
    *(uint32_t *)flag = 0;
    return flag;
}

static inline CUdeviceptr device_address(void *host)
{
    return (CUdeviceptr)(uintptr_t)host;
}

static inline CUstream new_stream(unsigned int flags)
{
    CUstream stream = NULL;

    OK(cuStreamCreate(&stream, flags));
    return stream;
}

static inline CUevent new_event(unsigned int flags)
{
    CUevent event = NULL;

    OK(cuEventCreate(&event, flags));
    return event;
}

/* Words of device memory, all 0. */
static inline CUdeviceptr new_words(size_t count)
{
    CUdeviceptr address = 0;

    OK(cuMemAlloc(&address, count * sizeof(uint32_t)));
    OK(cuMemsetD32(address, 0, count));
    OK(cuCtxSynchronize());
    return address;
}

/* The word at an address, by a copy that waits for nothing but the stream. */
static inline uint32_t word_at(CUdeviceptr address, CUstream stream)
{
    uint32_t word = 0;

    OK(cuMemcpyDtoHAsync(&word, address, sizeof(word), stream));
    OK(cuStreamSynchronize(stream));
    return word;
}
