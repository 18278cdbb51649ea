/* Calls the functions of spillway.h, with and without sense, before and while CUDA is in use. Every
 * answer is checked here; prints nothing. Argument: the path that the statistics file will have. */
#include <cuda.h>
#include <dlfcn.h>
#include <stdint.h>
#include <string.h>

#include "check.h"
#include "spillway.h"

enum { BYTES = 8 << 20, COUNTERS_MOST = 1000 };

/* Calls the function of the object that was loaded before the program. */
#define ASK(function) ((__typeof__(function) *)(uintptr_t)dlsym(RTLD_DEFAULT, #function))

static void before_cuda(void)
{
    struct spillway_stats stats = {.size = sizeof(stats)};
    uint64_t values[1];

    HOLD(ASK(spillway_version)() == SPILLWAY_VERSION_MAJOR * 1000 + SPILLWAY_VERSION_MINOR);
    HOLD(ASK(spillway_stats)(0, &stats) == CUDA_ERROR_INVALID_DEVICE);
    HOLD(ASK(spillway_counters)(0, values, 1) == CUDA_ERROR_INVALID_DEVICE);
    HOLD(ASK(spillway_trim)(0, 0) == CUDA_ERROR_INVALID_DEVICE);
    HOLD(ASK(spillway_about)("mode") == NULL);
    HOLD(ASK(spillway_mark_begin)("part") == CUDA_ERROR_NOT_INITIALIZED);
    HOLD(ASK(spillway_mark_step)() == CUDA_ERROR_NOT_INITIALIZED);
    HOLD(ASK(spillway_pin)(values, sizeof(values), 1) == CUDA_ERROR_NOT_INITIALIZED);
    HOLD(ASK(spillway_pause)() == CUDA_ERROR_NOT_INITIALIZED);
    HOLD(ASK(spillway_pause_rule)("rule") == CUDA_ERROR_NOT_INITIALIZED);
    HOLD(ASK(spillway_resume)() == CUDA_ERROR_NOT_INITIALIZED);
}

/* What a program that knows fewer members has behind them stays as it is. */
static void ask_for_statistics(void)
{
    struct spillway_stats stats = {.size = sizeof(stats)}, all = stats;

    HOLD(ASK(spillway_stats)(0, NULL) == CUDA_ERROR_INVALID_VALUE);
    stats.size = sizeof(stats.size) - 1;
    HOLD(ASK(spillway_stats)(0, &stats) == CUDA_ERROR_INVALID_VALUE);
    HOLD(ASK(spillway_stats)(-1, &all) == CUDA_ERROR_INVALID_DEVICE);
    HOLD(ASK(spillway_stats)(1, &all) == CUDA_ERROR_INVALID_DEVICE);
    MUST(ASK(spillway_stats)(0, &all));
    HOLD(all.size == sizeof(all) && all.live_bytes == BYTES && all.allocs == 2 && all.frees == 1);
    memset(&stats, 0xff, sizeof(stats));
    stats.size = offsetof(struct spillway_stats, live_bytes);
    MUST(ASK(spillway_stats)(0, &stats));
    HOLD(stats.size == offsetof(struct spillway_stats, live_bytes));
    HOLD(stats.limit_bytes == all.limit_bytes && stats.live_bytes == UINT64_MAX);
    stats.size = sizeof(stats) + 100;
    MUST(ASK(spillway_stats)(0, &stats));
    HOLD(stats.size == sizeof(stats) && stats.committed_bytes == all.committed_bytes);
}

static void ask_for_counters(void)
{
    uint64_t values[COUNTERS_MOST], few[2] = {1, 7};
    size_t count = 0, found = 0;

    while (ASK(spillway_counter_name)(count) != NULL) {
        count++;
    }
    HOLD(count > 50 && count < COUNTERS_MOST);
    HOLD(ASK(spillway_counters)(0, NULL, 1) == CUDA_ERROR_INVALID_VALUE);
    memset(values, 0xff, sizeof(values));
    MUST(ASK(spillway_counters)(0, values, COUNTERS_MOST));
    for (size_t i = 0; i < count; i++) {
        const char *name = ASK(spillway_counter_name)(i);

        HOLD(strcmp(name, "live_bytes") != 0 || values[i] == BYTES);
        HOLD(strcmp(name, "allocs") != 0 || values[i] == 2);
        HOLD(strcmp(name, "cuMemCreate") != 0 || values[i] > 0);
        found += strcmp(name, "cuMemCreate") == 0;
    }
    HOLD(found == 1);
    HOLD(values[count] == 0 && values[COUNTERS_MOST - 1] == 0);
    MUST(ASK(spillway_counters)(0, few, 1));
    HOLD(few[0] == values[0] && few[1] == 7);
}

static void trim(void)
{
    struct spillway_stats stats = {.size = sizeof(stats)};

    HOLD(ASK(spillway_trim)(1, 0) == CUDA_ERROR_INVALID_DEVICE);
    MUST(ASK(spillway_trim)(0, 3 * (size_t)BYTES));
    MUST(ASK(spillway_stats)(0, &stats));
    HOLD(stats.committed_bytes > BYTES);
    MUST(ASK(spillway_trim)(0, 0));
    MUST(ASK(spillway_stats)(0, &stats));
    HOLD(stats.committed_bytes == BYTES);
}

static void treat(CUdeviceptr block)
{
    const void *inside = (const void *)(uintptr_t)(block + 100);

    MUST(ASK(spillway_pin)(inside, 1, 1));
    MUST(ASK(spillway_pin)(inside, 1, 0));
    MUST(ASK(spillway_priority)(inside, 1, -1));
    HOLD(ASK(spillway_pin)(&block, sizeof(block), 1) == CUDA_ERROR_INVALID_VALUE);
    HOLD(ASK(spillway_priority)(NULL, 1, 1) == CUDA_ERROR_INVALID_VALUE);
}

static void mark(void)
{
    MUST(ASK(spillway_mark_begin)("part"));
    MUST(ASK(spillway_mark_step)());
    MUST(ASK(spillway_mark_end)("part"));
    HOLD(ASK(spillway_mark_begin)(NULL) == CUDA_ERROR_INVALID_VALUE);
    HOLD(ASK(spillway_mark_end)(NULL) == CUDA_ERROR_INVALID_VALUE);
}

static void pause_and_resume(CUdeviceptr block)
{
    unsigned char byte = 0;

    HOLD(ASK(spillway_pause_rule)(NULL) == CUDA_ERROR_INVALID_VALUE);
    HOLD(ASK(spillway_pause_rule)("no such rule") == CUDA_ERROR_INVALID_VALUE);
    MUST(ASK(spillway_pause)());
    MUST(ASK(spillway_resume)());
    MUST(ASK(spillway_resume)());
    MUST(cuMemcpyDtoH(&byte, block + BYTES - 1, 1));
    HOLD(byte == 9);
}

int main(int argc, char **argv)
{
    CUdeviceptr block = 0, brief = 0;
    CUcontext context = NULL;

    HOLD(argc == 2);
    before_cuda();
    MUST(cuInit(0));
    MUST(cuDevicePrimaryCtxRetain(&context, 0));
    MUST(cuCtxSetCurrent(context));
    MUST(ASK(spillway_trim)(0, 0));
    MUST(cuMemAlloc(&block, BYTES));
    MUST(cuMemAlloc(&brief, 4 * (size_t)BYTES));
    MUST(cuMemsetD8(block, 9, BYTES));
    MUST(cuMemFree(brief));
    MUST(cuCtxSynchronize());
    HOLD(strcmp(ASK(spillway_about)("mode"), "auto") == 0);
    HOLD(strcmp(ASK(spillway_about)("policy"), "") == 0);
    HOLD(strcmp(ASK(spillway_about)("statistics"), argv[1]) == 0);
    HOLD(strcmp(ASK(spillway_about)("recording"), "") == 0);
    HOLD(ASK(spillway_about)("weather") == NULL && ASK(spillway_about)(NULL) == NULL);
    ask_for_statistics();
    ask_for_counters();
    trim();
    treat(block);
    mark();
    pause_and_resume(block);
    MUST(cuMemFree(block));
    return 0;
}
