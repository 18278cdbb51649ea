#include "cli/doctor/tables.h"

#include "cli/doctor/host_chunks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MIB ((size_t)1 << 20)

enum step { RESERVE, CREATE, MAP, SET_ACCESS, UNMAP, RELEASE, STEP_COUNT };

/* Operations on many chunks in one range. */
enum batch { MAP_EACH, ACCESS_ONCE, ACCESS_EACH, UNMAP_ONCE, UNMAP_EACH, BATCH_COUNT };

enum { MOST_CHUNKS = 512, BATCH_REPEATS = 7, SAMPLES = 16 };

/* Several chunks, mapped next to each other into one range. */
struct row_of_chunks {
    const struct spw_cli_cuda *cuda;
    CUdevice device;
    CUdeviceptr address;
    size_t bytes; /* of each chunk */
    int count;
    CUmemGenericAllocationHandle chunks[MOST_CHUNKS];
};

static int compare(const void *left, const void *right)
{
    double a = *(const double *)left;
    double b = *(const double *)right;

    return (a > b) - (a < b);
}

static double median(double *values, int count)
{
    qsort(values, (size_t)count, sizeof(*values), compare);
    return values[count / 2];
}

static double lap(double *last)
{
    double now = spw_cli_now_us();
    double passed = now - *last;

    *last = now;
    return passed;
}

static CUresult time_chunk(const struct spw_cli_cuda *cuda, CUdevice device,
                           struct spw_cli_place place, size_t bytes, double us[STEP_COUNT])
{
    CUmemAllocationProp properties = spw_cli_place_properties(place);
    CUmemGenericAllocationHandle chunk;
    CUdeviceptr address;
    CUresult result;
    double last = spw_cli_now_us();

    result = cuda->cuMemAddressReserve(&address, bytes, 0, 0, 0);
    us[RESERVE] = lap(&last);
    if (result != CUDA_SUCCESS) {
        return result;
    }
    result = cuda->cuMemCreate(&chunk, bytes, &properties, 0);
    us[CREATE] = lap(&last);
    if (result != CUDA_SUCCESS) {
        goto err_reserve;
    }
    result = cuda->cuMemMap(address, bytes, 0, chunk, 0);
    us[MAP] = lap(&last);
    if (result != CUDA_SUCCESS) {
        goto err_create;
    }
    result = spw_cli_cuda_allow(cuda, device, address, bytes);
    us[SET_ACCESS] = lap(&last);
    cuda->cuMemUnmap(address, bytes);
    us[UNMAP] = lap(&last);
err_create:
    cuda->cuMemRelease(chunk);
    us[RELEASE] = lap(&last);
err_reserve:
    cuda->cuMemAddressFree(address, bytes);
    return result;
}

static CUresult time_chunks(const struct spw_cli_cuda *cuda, CUdevice device,
                            struct spw_cli_place place, size_t bytes, double ret_median[STEP_COUNT])
{
    double samples[STEP_COUNT][SAMPLES];
    int repeats = bytes < 256 * MIB ? 15 : 5;

    for (int i = 0; i < repeats; i++) {
        double us[STEP_COUNT] = {0};
        CUresult result = time_chunk(cuda, device, place, bytes, us);

        if (result != CUDA_SUCCESS) {
            return result;
        }
        for (int step = 0; step < STEP_COUNT; step++) {
            samples[step][i] = us[step];
        }
    }
    for (int step = 0; step < STEP_COUNT; step++) {
        ret_median[step] = median(samples[step], repeats);
    }
    return CUDA_SUCCESS;
}

static void measure_chunks(const struct spw_cli_cuda *cuda, CUdevice device,
                           struct spw_cli_place place, struct spw_cli_report *report)
{
    static const size_t sizes[] = {2, 4, 16, 64, 256, 1024};

    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
        double us[STEP_COUNT];
        CUresult result = time_chunks(cuda, device, place, sizes[i] * MIB, us);

        if (result != CUDA_SUCCESS) {
            spw_cli_report_row(report, "%zu\tnot measured: %s", sizes[i],
                               spw_cli_cuda_error(cuda, result));
        } else {
            spw_cli_report_row(report, "%zu\t%.1f\t%.1f\t%.1f\t%.1f\t%.1f\t%.1f", sizes[i],
                               us[RESERVE], us[CREATE], us[MAP], us[SET_ACCESS], us[UNMAP],
                               us[RELEASE]);
        }
    }
}

static CUresult row_init(struct row_of_chunks *row, const struct spw_cli_cuda *cuda,
                         CUdevice device, struct spw_cli_place place)
{
    CUmemAllocationProp properties = spw_cli_place_properties(place);
    CUresult result;

    row->cuda = cuda;
    row->device = device;
    row->count = 0;
    row->bytes = spw_cli_place_granule(cuda, place);
    if (row->bytes == 0) {
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    result = cuda->cuMemAddressReserve(&row->address, MOST_CHUNKS * row->bytes, 0, 0, 0);
    if (result != CUDA_SUCCESS) {
        return result;
    }
    while (row->count < MOST_CHUNKS &&
           (result = cuda->cuMemCreate(&row->chunks[row->count], row->bytes, &properties, 0)) ==
               CUDA_SUCCESS) {
        row->count++;
    }
    if (row->count == 0) {
        cuda->cuMemAddressFree(row->address, MOST_CHUNKS * row->bytes);
        return result;
    }
    return CUDA_SUCCESS;
}

static void row_fini(struct row_of_chunks *row)
{
    for (int i = 0; i < row->count; i++) {
        row->cuda->cuMemRelease(row->chunks[i]);
    }
    row->cuda->cuMemAddressFree(row->address, MOST_CHUNKS * row->bytes);
}

enum call { MAP_CHUNK, ALLOW_CHUNK, UNMAP_CHUNK };

static CUresult each(const struct row_of_chunks *row, enum call call, int count)
{
    CUresult result = CUDA_SUCCESS;

    for (int i = 0; i < count && result == CUDA_SUCCESS; i++) {
        CUdeviceptr at = row->address + (size_t)i * row->bytes;

        result = call == MAP_CHUNK     ? row->cuda->cuMemMap(at, row->bytes, 0, row->chunks[i], 0)
                 : call == ALLOW_CHUNK ? spw_cli_cuda_allow(row->cuda, row->device, at, row->bytes)
                                       : row->cuda->cuMemUnmap(at, row->bytes);
    }
    return result;
}

/* Results of the calls that cover the whole range. Not every driver allows such calls. */
struct at_once {
    CUresult access;
    CUresult unmap;
};

/* Maps `count` chunks twice: once for calls on the whole range, once for one call per chunk. */
static CUresult time_batch(const struct row_of_chunks *row, int count, double us[BATCH_COUNT],
                           struct at_once *at_once)
{
    const struct spw_cli_cuda *cuda = row->cuda;
    size_t bytes = (size_t)count * row->bytes;
    CUresult result;
    double last = spw_cli_now_us();

    result = each(row, MAP_CHUNK, count);
    us[MAP_EACH] = lap(&last);
    at_once->access = spw_cli_cuda_allow(cuda, row->device, row->address, bytes);
    us[ACCESS_ONCE] = lap(&last);
    at_once->unmap = cuda->cuMemUnmap(row->address, bytes);
    us[UNMAP_ONCE] = lap(&last);
    if (at_once->unmap != CUDA_SUCCESS) {
        each(row, UNMAP_CHUNK, count);
    }
    if (result != CUDA_SUCCESS) {
        return result;
    }
    result = each(row, MAP_CHUNK, count);
    last = spw_cli_now_us();
    if (result == CUDA_SUCCESS) {
        result = each(row, ALLOW_CHUNK, count);
    }
    us[ACCESS_EACH] = lap(&last);
    each(row, UNMAP_CHUNK, count);
    us[UNMAP_EACH] = lap(&last);
    return result;
}

static const char *cell(const struct spw_cli_cuda *cuda, CUresult result, double us,
                        char text[SPW_CLI_REPORT_CELL])
{
    if (result != CUDA_SUCCESS) {
        snprintf(text, SPW_CLI_REPORT_CELL, "fails: %s", spw_cli_cuda_error(cuda, result));
    } else {
        snprintf(text, SPW_CLI_REPORT_CELL, "%.1f", us);
    }
    return text;
}

static void measure_batch(const struct row_of_chunks *row, int count, struct spw_cli_report *report)
{
    double samples[BATCH_COUNT][SAMPLES];
    double us[BATCH_COUNT];
    char access[SPW_CLI_REPORT_CELL];
    char unmap[SPW_CLI_REPORT_CELL];
    struct at_once at_once;

    for (int i = 0; i < BATCH_REPEATS; i++) {
        CUresult result = time_batch(row, count, us, &at_once);

        if (result != CUDA_SUCCESS) {
            spw_cli_report_row(report, "%d\tnot measured: %s", count,
                               spw_cli_cuda_error(row->cuda, result));
            return;
        }
        for (int batch = 0; batch < BATCH_COUNT; batch++) {
            samples[batch][i] = us[batch];
        }
    }
    for (int batch = 0; batch < BATCH_COUNT; batch++) {
        us[batch] = median(samples[batch], BATCH_REPEATS);
    }
    spw_cli_report_row(report, "%d\t%.1f\t%s\t%.1f\t%s\t%.1f", count, us[MAP_EACH],
                       cell(row->cuda, at_once.access, us[ACCESS_ONCE], access), us[ACCESS_EACH],
                       cell(row->cuda, at_once.unmap, us[UNMAP_ONCE], unmap), us[UNMAP_EACH]);
}

static void measure_batches(const struct spw_cli_cuda *cuda, CUdevice device,
                            struct spw_cli_place place, struct spw_cli_report *report)
{
    static struct row_of_chunks row;
    CUresult result = row_init(&row, cuda, device, place);

    if (result != CUDA_SUCCESS) {
        spw_cli_report_row(report, "1\tnot measured: %s", spw_cli_cuda_error(cuda, result));
        return;
    }
    for (int count = 1; count <= row.count; count *= 2) {
        measure_batch(&row, count, report);
    }
    row_fini(&row);
}

void spw_cli_doctor_measure_vmm(const struct spw_cli_cuda *cuda, CUdevice device,
                                struct spw_cli_report *report)
{
    static const char *const chunk_columns[] = {
        "MiB", "reserve", "create", "map", "set access", "unmap", "release", NULL,
    };
    static const char *const batch_columns[] = {
        "chunks", "map", "set access, once", "set access, each", "unmap, once", "unmap, each", NULL,
    };
    struct spw_cli_place host = spw_cli_host_chunks_find(cuda, device)->place;
    struct spw_cli_place own = spw_cli_place_device(device);

    spw_cli_report_table(report, "chunk_device", "One chunk of device memory (median, us)",
                         chunk_columns);
    measure_chunks(cuda, device, own, report);
    spw_cli_report_table(report, "chunk_host", "One chunk of host memory (median, us)",
                         chunk_columns);
    measure_chunks(cuda, device, host, report);
    spw_cli_report_table(report, "range_device",
                         "Chunks of device memory, 2 MiB each, in one range (median, us for all)",
                         batch_columns);
    measure_batches(cuda, device, own, report);
    spw_cli_report_table(report, "range_host",
                         "Chunks of host memory, 2 MiB each, in one range (median, us for all)",
                         batch_columns);
    measure_batches(cuda, device, host, report);
}
