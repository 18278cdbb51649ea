/* Copies and kernels on host memory by how its pages were made: chunks by place and size, and the
 * program's own memory that is registered, with huge pages and without. */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "kernels.h"
#include "memory.h"
#include "sections.h"

#define REPEAT 5

static CUdeviceptr device;
static size_t bytes;

static double rate(CUdeviceptr to, CUdeviceptr from)
{
    double times[REPEAT];
    const size_t repeat = probe_repeat(REPEAT);

    MUST(cuMemcpyAsync(to, from, bytes, NULL));
    MUST(cuCtxSynchronize());
    for (size_t i = 0; i < repeat; i++) {
        double begin = probe_now();

        MUST(cuMemcpyAsync(to, from, bytes, NULL));
        MUST(cuCtxSynchronize());
        times[i] = probe_now() - begin;
    }
    return (double)bytes / probe_median(times, repeat) / 1e3;
}

static void show(const char *what, CUdeviceptr host)
{
    size_t quads = bytes / 16;
    CUdeviceptr sink;
    char subject[96];

    kernels_fill(device, bytes / 4, 3, NULL);
    probe_measure(rate(host, device), "GB/s", "%s: copy out", what);
    probe_measure(rate(device, host), "GB/s", "%s: copy in", what);
    MUST(cuMemAlloc(&sink, 4));
    void *params[] = {&host, &quads, &sink};
    kernels_launch("probe_read", 2048, NULL, params);
    MUST(cuCtxSynchronize());
    double begin = probe_now();
    kernels_launch("probe_read", 2048, NULL, params);
    MUST(cuCtxSynchronize());
    probe_measure((double)bytes / (probe_now() - begin) / 1e3, "GB/s", "%s: a kernel reads it",
                  what);
    snprintf(subject, sizeof(subject), "%s: content", what);
    probe_verdict(kernels_differ(device, bytes / 4, 3) == 0 &&
                      kernels_differ(host, bytes / 4, 3) == 0,
                  subject, "");
    MUST(cuMemFree(sink));
}

static void show_chunks(size_t mib)
{
    const enum tier host = ON_HOST;
    const size_t count = bytes / (mib * MIB);
    char what[64];

    if (count == 0) {
        return;
    }
    snprintf(what, sizeof(what), "chunks of %zu MiB", mib);
    CUdeviceptr address = memory_new_range(&host, 1, mib * MIB, count);
    show(what, address);
    memory_delete_range(address, mib * MIB, count);
}

/* Anonymous memory, registered. advice: of madvise, 0: none; flags: more of mmap. */
static void show_registered(const char *what, int flags, int advice)
{
    CUdeviceptr address = 0;
    char subject[96];
    const double mib = (double)bytes / (double)MIB;
    void *memory =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);

    if (memory == MAP_FAILED) {
        probe_note("skipped", what, "mmap refuses %zu MiB", bytes / MIB);
        return;
    }
    if (advice != 0 && madvise(memory, bytes, advice) != 0) {
        probe_note("skipped", what, "madvise refuses it");
        munmap(memory, bytes);
        return;
    }
    double begin = probe_now();
    memset(memory, 1, bytes);
    probe_measure((probe_now() - begin) / mib, "us", "%s: touch a MiB", what);
    snprintf(subject, sizeof(subject), "%s: huge pages of the process", what);
    probe_note("figure", subject, "%zu MiB",
               memory_kilobytes("/proc/self/smaps_rollup", "AnonHugePages") / MIB);
    begin = probe_now();
    CUresult result = cuMemHostRegister(memory, bytes, CU_MEMHOSTREGISTER_DEVICEMAP);
    double took = probe_now() - begin;
    if (result != CUDA_SUCCESS) {
        probe_note("skipped", what, "cuMemHostRegister: %s", probe_error(result));
        munmap(memory, bytes);
        return;
    }
    probe_measure(took / mib, "us", "%s: register a MiB", what);
    MUST(cuMemHostGetDevicePointer(&address, memory, 0));
    show(what, address);
    begin = probe_now();
    MUST(cuMemHostUnregister(memory));
    probe_measure((probe_now() - begin) / mib, "us", "%s: unregister a MiB", what);
    munmap(memory, bytes);
}

static void show_setting(void)
{
    FILE *file = fopen("/sys/kernel/mm/transparent_hugepage/enabled", "r");
    char line[128] = "not shown";

    if (file != NULL) {
        if (fgets(line, sizeof(line), file) == NULL) {
            snprintf(line, sizeof(line), "not shown");
        }
        fclose(file);
    }
    line[strcspn(line, "\n")] = '\0';
    probe_note("figure", "transparent huge pages", "%s", line);
}

/* "registered", or the place of the chunks as memory_find_host_at takes it. */
void section_host_pages(const char *argument)
{
    bool registered = argument != NULL && strcmp(argument, "registered") == 0;

    bytes = probe.tiny ? 16 * MIB : 256 * MIB;
    if (!registered && !(argument == NULL ? memory_find_host() : memory_find_host_at(argument))) {
        return;
    }
    MUST(cuMemAlloc(&device, bytes));
    kernels_warm_up();
    if (!registered) {
        for (size_t mib = 2; mib <= 256; mib *= mib == 2 ? 8 : 4) {
            show_chunks(mib);
        }
        return;
    }
    show_setting();
    show_registered("registered, small pages", 0, MADV_NOHUGEPAGE);
    show_registered("registered, huge pages", 0, MADV_HUGEPAGE);
    if (memory_kilobytes("/proc/meminfo", "HugePages_Free") >> 10 < bytes / (2 * MIB)) {
        probe_note("skipped", "registered, hugetlbfs", "the machine keeps no such pages free");
    } else {
        show_registered("registered, hugetlbfs", MAP_HUGETLB, 0);
    }
}
