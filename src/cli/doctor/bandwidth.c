#include "cli/doctor/tables.h"

#include "cli/doctor/host_chunks.h"

#include <string.h>

enum { BYTES = 256 << 20, REPEATS = 4 };
enum { READ_BLOCKS = 2048, READ_THREADS = 256, READ_WORD = 16 };
enum direction { UP = 1, DOWN = 2, BOTH = UP | DOWN };

struct copies {
    const struct spw_cli_cuda *cuda;
    void *host[2]; /* [0] is the source, [1] the destination */
    CUdeviceptr block[2];
    CUstream stream[2];
};

static double gigabytes_per_second(double bytes, double us)
{
    return bytes / us / 1e3;
}

static void copies_fini(struct copies *copies)
{
    for (int i = 0; i < 2; i++) {
        if (copies->stream[i] != NULL) {
            copies->cuda->cuStreamDestroy_v2(copies->stream[i]);
        }
        if (copies->block[i] != 0) {
            copies->cuda->cuMemFree_v2(copies->block[i]);
        }
        if (copies->host[i] != NULL) {
            copies->cuda->cuMemFreeHost(copies->host[i]);
        }
    }
}

/* The caller calls copies_fini, even after a failure. */
static CUresult copies_init(struct copies *copies, const struct spw_cli_cuda *cuda)
{
    CUresult result = CUDA_SUCCESS;

    *copies = (struct copies){.cuda = cuda};
    for (int i = 0; i < 2 && result == CUDA_SUCCESS; i++) {
        result = cuda->cuMemHostAlloc(&copies->host[i], BYTES, 0);
        if (result == CUDA_SUCCESS) {
            result = cuda->cuMemAlloc_v2(&copies->block[i], BYTES);
        }
        if (result == CUDA_SUCCESS) {
            result = cuda->cuStreamCreate(&copies->stream[i], CU_STREAM_NON_BLOCKING);
        }
    }
    return result;
}

static CUresult copy(const struct copies *copies, enum direction direction)
{
    const struct spw_cli_cuda *cuda = copies->cuda;
    CUresult result = CUDA_SUCCESS;

    if ((direction & UP) != 0) {
        result =
            cuda->cuMemcpyHtoDAsync_v2(copies->block[0], copies->host[0], BYTES, copies->stream[0]);
    }
    if (result == CUDA_SUCCESS && (direction & DOWN) != 0) {
        result =
            cuda->cuMemcpyDtoHAsync_v2(copies->host[1], copies->block[1], BYTES, copies->stream[1]);
    }
    for (int i = 0; i < 2 && result == CUDA_SUCCESS; i++) {
        result = cuda->cuStreamSynchronize(copies->stream[i]);
    }
    return result;
}

static void measure_copy(const struct copies *copies, enum direction direction, const char *name,
                         struct spw_cli_report *report)
{
    CUresult result = copy(copies, direction);
    double us = spw_cli_now_us();

    for (int i = 0; i < REPEATS && result == CUDA_SUCCESS; i++) {
        result = copy(copies, direction);
    }
    us = spw_cli_now_us() - us;
    if (result != CUDA_SUCCESS) {
        spw_cli_report_row(report, "%s\tnot measured: %s", name,
                           spw_cli_cuda_error(copies->cuda, result));
    } else {
        spw_cli_report_row(report, "%s\t%.1f", name,
                           gigabytes_per_second((double)REPEATS * BYTES, us));
    }
}

void spw_cli_doctor_measure_copies(const struct spw_cli_cuda *cuda, struct spw_cli_report *report)
{
    static const char *const columns[] = {"direction", "GB/s", NULL};
    struct copies copies;
    CUresult result;

    spw_cli_report_table(report, "copies", "Copies of 256 MiB, page-locked memory", columns);
    result = copies_init(&copies, cuda);
    if (result != CUDA_SUCCESS) {
        spw_cli_report_row(report, "all\tnot measured: %s", spw_cli_cuda_error(cuda, result));
    } else {
        measure_copy(&copies, UP, "host to device", report);
        measure_copy(&copies, DOWN, "device to host", report);
        measure_copy(&copies, BOTH, "both at once, each way", report);
    }
    copies_fini(&copies);
}

static CUresult read_once(const struct spw_cli_cuda *cuda, CUfunction kernel, CUdeviceptr from)
{
    uint64_t count = BYTES / READ_WORD;
    CUdeviceptr sink = from; /* written only if the sum has one particular value */
    void *arguments[] = {&from, &count, &sink};
    CUresult result = cuda->cuLaunchKernel(kernel, READ_BLOCKS, 1, 1, READ_THREADS, 1, 1, 0, NULL,
                                           arguments, NULL);

    return result == CUDA_SUCCESS ? cuda->cuCtxSynchronize() : result;
}

static CUresult time_read(const struct spw_cli_cuda *cuda, CUdevice device, CUfunction kernel,
                          struct spw_cli_place place, double *ret_us)
{
    struct spw_cli_mapped mapped;
    CUresult result = spw_cli_cuda_map(cuda, device, place, BYTES, &mapped);
    double us;

    if (result != CUDA_SUCCESS) {
        return result;
    }
    result = read_once(cuda, kernel, mapped.address);
    us = spw_cli_now_us();
    for (int i = 0; i < REPEATS && result == CUDA_SUCCESS; i++) {
        result = read_once(cuda, kernel, mapped.address);
    }
    *ret_us = spw_cli_now_us() - us;
    spw_cli_cuda_unmap(cuda, &mapped);
    return result;
}

void spw_cli_doctor_measure_reads(const struct spw_cli_cuda *cuda, CUdevice device, CUmodule module,
                                  struct spw_cli_report *report)
{
    static const char *const columns[] = {"memory", "GB/s", NULL};
    const struct {
        const char *name;
        struct spw_cli_place place;
    } cases[] = {
        {"device chunk", spw_cli_place_device(device)},
        {"host chunk", spw_cli_host_chunks_find(cuda, device)->place},
    };
    CUfunction kernel;
    CUresult result;

    spw_cli_report_table(report, "kernel_reads", "A kernel reads 256 MiB", columns);
    result = cuda->cuModuleGetFunction(&kernel, module, "spw_read");
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        double us = 0;

        if (result == CUDA_SUCCESS) {
            result = time_read(cuda, device, kernel, cases[i].place, &us);
        }
        if (result != CUDA_SUCCESS) {
            spw_cli_report_row(report, "%s\tnot measured: %s", cases[i].name,
                               spw_cli_cuda_error(cuda, result));
        } else {
            spw_cli_report_row(report, "%s\t%.1f", cases[i].name,
                               gigabytes_per_second((double)REPEATS * BYTES, us));
        }
    }
}
