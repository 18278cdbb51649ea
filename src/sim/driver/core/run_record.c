#include "sim/driver/core/run_record.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "sim/driver/core/context.h"
#include "sim/driver/core/control.h"
#include "sim/driver/core/export.h"
#include "sim/driver/core/lock.h"
#include "sim/driver/core/say.h"
#include "sim/driver/core/tables.h"
#include "system/create.h"
#include "system/file_limit.h"

#define MOST_IMAGES 16 /* a process may execute one program after the other */

/* Facts about the call in progress. */
struct call {
    int asked_of; /* device ordinal, NOBODY or THE_HOST */
    size_t asked_bytes;
    int lacking; /* whose memory the last attempt lacked; values as above */
    size_t lacking_bytes;
    size_t missing_bytes;
};

enum { NOBODY = -1, THE_HOST = -2 };

static struct sim_record private_record;
static struct sim_record *record = &private_record;
static _Thread_local struct call call;

static struct sim_record_device *of(const struct sim_device *device)
{
    return &record->devices[device->ordinal];
}

static void raise_peak(uint64_t *peak, uint64_t value)
{
    if (value > *peak) {
        *peak = value;
    }
}

/* ---- the mapping ---- */

static char path[PATH_MAX]; /* of the record's file; "": there is none */

static int open_record(const char *folder)
{
    for (int image = 0; image < MOST_IMAGES; image++) {
        int fd;

        snprintf(path, PATH_MAX, image == 0 ? "%s/sim-%d" : "%s/sim-%d.%d", folder, (int)getpid(),
                 image);
        fd = spw_create_open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
        if (fd >= 0 || errno != EEXIST) {
            return fd;
        }
    }
    return -1;
}

/* The whole file is allocated at once, so that a full file system is detected here and does not
 * cause SIGBUS later. */
static struct sim_record *map_record(int fd)
{
    void *address = MAP_FAILED;

    errno =
        spw_file_may_have(sizeof(*record)) ? posix_fallocate(fd, 0, (off_t)sizeof(*record)) : EFBIG;
    if (errno == 0) {
        address = mmap(NULL, sizeof(*record), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    }
    return address != MAP_FAILED ? address : NULL;
}

static void read_command(void)
{
    int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    ssize_t length = fd < 0 ? 0 : read(fd, record->command, sizeof(record->command) - 1);

    if (fd >= 0) {
        close(fd);
    }
    record->command_bytes = length > 0 ? (uint32_t)length : 0;
}

/* The reason is stored as a link, because a full file system may have room for a link but not for a
 * file. */
void sim_run_record_fail(const char *why)
{
    char link[PATH_MAX + 16];

    if (path[0] != '\0') {
        snprintf(link, sizeof(link), "%s" SIM_RECORD_PROBLEM, path);
        (void)!symlink(why, link);
    }
    sim_say("no verdict: %s", why);
}

static void fail(int err)
{
    char why[SIM_RECORD_COMMAND];

    snprintf(why, sizeof(why), "%.512s cannot be written: %s", path,
             err == EFBIG ? "the limit on the size of files (ulimit -f) is too low"
                          : strerror(err));
    sim_run_record_fail(why);
}

void sim_run_record_start(void)
{
    const char *folder = getenv("SPILLWAY_RUN_DIR");
    struct sim_record *mapped;
    int fd, err;

    if (folder == NULL || record != &private_record) {
        return;
    }
    fd = open_record(folder);
    mapped = fd >= 0 ? map_record(fd) : NULL;
    err = errno;
    if (fd >= 0) {
        close(fd);
    }
    if (mapped == NULL) {
        if (err != ENOENT) { /* ENOENT: the run has ended, without a verdict */
            fail(err);
        }
        return;
    }
    memcpy(mapped->runtime, record->runtime, sizeof(record->runtime));
    record = mapped;
    record->version = SIM_RECORD_VERSION;
    record->bytes = sizeof(*record);
    record->pid = (int32_t)getpid();
    record->device_count = sim_device_count();
    for (int i = 0; i < record->device_count; i++) {
        record->devices[i].index = sim_device_get(i)->index;
        record->devices[i].total_bytes = sim_device_get(i)->total_bytes;
        record->devices[i].one_memory = sim_device_get(i)->sharing.one_memory;
    }
    read_command();
    record->magic = SIM_RECORD_MAGIC; /* last: the record is now valid */
}

void sim_run_record_runtime(const char *file)
{
    snprintf(record->runtime, sizeof(record->runtime), "%s", file);
}

void sim_run_record_forget(void)
{
    path[0] = '\0';
    if (record != &private_record) {
        munmap(record, sizeof(*record));
        record = &private_record;
    }
}

/* ---- calls ---- */

void sim_run_record_begin(void)
{
    call = (struct call){.asked_of = NOBODY, .lacking = NOBODY};
}

void sim_run_record_asked(const struct sim_device *device, size_t bytes)
{
    call.asked_of = device != NULL ? device->ordinal : THE_HOST;
    call.asked_bytes = bytes;
    if (device != NULL) {
        of(device)->allocations++;
    }
}

void sim_run_record_lacked(const struct sim_device *device, size_t bytes, size_t missing)
{
    call.lacking = device != NULL ? device->ordinal : THE_HOST;
    call.lacking_bytes = bytes;
    call.missing_bytes = missing;
}

/* The device that a refusal is recorded for. */
static int refusing_device(void)
{
    CUcontext ctx = sim_ctx_current();

    if (call.asked_of >= 0) {
        return call.asked_of;
    }
    if (call.lacking >= 0) {
        return call.lacking;
    }
    return sim_ctx_is_live(ctx) ? ctx->device->ordinal : 0;
}

static enum sim_record_kind kind_of(enum sim_fn fn)
{
    return fn == SIM_FN_cuMemCreate ? SIM_RECORD_CHUNK : SIM_RECORD_OTHER;
}

static int thread_id(void)
{
    return (int)syscall(SYS_gettid);
}

/* Counts a refusal. If the last refused request was the same request and has not succeeded since,
 * the refusal is a repetition. */
static void count_refusal(struct sim_record_device *device, enum sim_record_kind kind,
                          const struct sim_record_refusal *refusal)
{
    const struct sim_record_refusal *last = &device->last[kind];
    bool pending = device->refusals[kind] > 0 && !last->overcome;
    bool same = pending && last->bytes == refusal->bytes && last->tid == refusal->tid &&
                strcmp(last->api, refusal->api) == 0;

    device->refusals[kind]++;
    device->refused[kind] += !same;
    if (pending && !same) {
        device->lost[kind] = *last;
    }
    device->last[kind] = *refusal;
}

static void note_refusal(enum sim_fn fn)
{
    struct sim_record_device *device = &record->devices[refusing_device()];
    struct sim_record_refusal refusal;
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    refusal = (struct sim_record_refusal){
        .number = call.asked_of >= 0 ? device->allocations : 0,
        .bytes = call.asked_of != NOBODY ? call.asked_bytes : call.lacking_bytes,
        .missing_bytes = call.missing_bytes,
        .time_ns = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec,
        .lack = call.lacking == NOBODY     ? SIM_RECORD_NOTHING
                : call.lacking == THE_HOST ? SIM_RECORD_HOST
                                           : SIM_RECORD_DEVICE,
        .tid = thread_id(),
    };
    snprintf(refusal.api, sizeof(refusal.api), "%s", sim_fn_names[fn]);
    prctl(PR_GET_NAME, refusal.thread);
    count_refusal(device, kind_of(fn), &refusal);
}

/* True if the successful call in progress repeats the refused call. It must be a call of the same
 * function with at least as many bytes. If the calls have no size, they must have the same function
 * and the same thread. */
static bool overcomes(const struct sim_record_refusal *refusal, enum sim_fn fn)
{
    if (refusal->overcome || strcmp(refusal->api, sim_fn_names[fn]) != 0) {
        return false;
    }
    return call.asked_of == NOBODY ? refusal->tid == thread_id()
                                   : call.asked_bytes >= refusal->bytes;
}

static void note_success(enum sim_fn fn)
{
    for (int i = 0; i < record->device_count; i++) {
        struct sim_record_device *device = &record->devices[i];
        enum sim_record_kind kind = kind_of(fn);

        if (device->refusals[kind] > 0 && (call.asked_of < 0 || call.asked_of == i) &&
            overcomes(&device->last[kind], fn)) {
            device->last[kind].overcome = true;
            device->overcome[kind]++;
        }
    }
}

void sim_run_record_end(enum sim_fn fn, CUresult result)
{
    if (result == CUDA_ERROR_OUT_OF_MEMORY) {
        note_refusal(fn);
    } else if (result == CUDA_SUCCESS) {
        note_success(fn);
    }
}

/* ---- figures ---- */

/* The part of the used memory that the program did not request. */
static uint64_t not_of_program(const struct sim_record_device *figures)
{
    uint64_t besides =
        figures->own_bytes > figures->overhead_bytes ? figures->own_bytes : figures->overhead_bytes;

    return besides + figures->nccl_taken_bytes;
}

void sim_run_record_used(const struct sim_device *device, int64_t own)
{
    struct sim_record_device *figures = of(device);
    uint64_t besides;

    figures->used_bytes = device->used_bytes;
    raise_peak(&figures->used_peak_bytes, figures->used_bytes);
    figures->own_bytes += (uint64_t)own;
    raise_peak(&figures->own_peak_bytes, figures->own_bytes);
    besides = not_of_program(figures);
    raise_peak(&figures->program_peak_bytes,
               figures->used_bytes > besides ? figures->used_bytes - besides : 0);
}

void sim_run_record_together(const struct sim_device *device, uint64_t host)
{
    raise_peak(&of(device)->together_peak_bytes, device->used_bytes + host);
}

void sim_run_record_died(const struct sim_device *device, uint64_t missing)
{
    of(device)->died_missing_bytes = missing;
}

void sim_run_record_nccl(const struct sim_device *device, const struct sim_run_record_nccl *change)
{
    struct sim_record_device *figures = of(device);

    figures->communicators += (uint64_t)change->communicators;
    figures->nccl_bytes += (uint64_t)change->bytes;
    figures->nccl_most_bytes += (uint64_t)change->most_bytes;
    figures->nccl_taken_bytes += (uint64_t)change->taken_bytes;
    raise_peak(&figures->communicators_peak, figures->communicators);
    raise_peak(&figures->ranks_peak, (uint64_t)change->ranks);
    raise_peak(&figures->nccl_peak_bytes, figures->nccl_bytes);
    raise_peak(&figures->nccl_most_peak_bytes, figures->nccl_most_bytes);
}

void sim_run_record_overhead(const struct sim_device *device, size_t bytes)
{
    of(device)->overhead_bytes = bytes;
    sim_run_record_used(device, 0);
}

void sim_run_record_held(const struct sim_device *device, int64_t bytes)
{
    struct sim_record_device *figures = of(device);

    figures->held_bytes += (uint64_t)bytes;
    raise_peak(&figures->held_peak_bytes, figures->held_bytes);
}

void sim_run_record_launched(const struct sim_device *device, enum spw_layout layout, bool computes)
{
    struct sim_record_device *figures = of(device);

    figures->launches[layout]++;
    figures->idle_launches += !computes;
}

/* When all marks are used, every other mark is dropped. */
static void mark(struct sim_record_device *figures)
{
    figures->mark_every = figures->mark_every == 0 ? 1 : figures->mark_every;
    if (figures->kernels % figures->mark_every != 0) {
        return;
    }
    if (figures->mark_count == SIM_RECORD_MARKS) {
        figures->mark_every *= 2;
        figures->mark_count /= 2;
        for (uint64_t i = 0; i < figures->mark_count; i++) {
            figures->marks_ns[i] = figures->marks_ns[2 * i + 1];
        }
        if (figures->kernels % figures->mark_every != 0) {
            return;
        }
    }
    figures->marks_ns[figures->mark_count++] = figures->end_ns;
}

void sim_run_record_ran(int ordinal, bool kernel, uint64_t end_ns, uint64_t in_bytes,
                        uint64_t out_bytes)
{
    struct sim_record_device *figures = &record->devices[ordinal];

    raise_peak(&figures->end_ns, end_ns);
    if (kernel) {
        figures->link_in_bytes += in_bytes;
        figures->link_out_bytes += out_bytes;
        figures->kernels++;
        mark(figures);
    }
}

void sim_run_record_step(int ordinal, const struct sim_record_step *step)
{
    record->devices[ordinal].step = *step;
}

void sim_run_record_engines(const struct sim_device *device, bool guessed, bool search)
{
    struct sim_record_device *figures = of(device);

    figures->engines_asked += !guessed && !search;
    figures->engines_guessed += guessed && !search;
    figures->searches += search;
}

void sim_run_record_chosen(int ordinal)
{
    record->devices[ordinal].chosen++;
}

void sim_run_record_read(int ordinal, size_t bytes, bool is_known)
{
    struct sim_record_device *figures = &record->devices[ordinal];

    if (figures->idle_launches == 0) {
        return;
    }
    if (bytes <= SIM_RECORD_SMALL) {
        figures->small_reads++;
        figures->known_reads += is_known;
        return;
    }
    if (!is_known) {
        figures->bulk_reads++;
        figures->bulk_read_bytes += bytes;
    }
}

SIM_EXPORT unsigned long long spillway_sim_reads(unsigned long long *ret_known)
{
    unsigned long long reads = 0, known = 0;

    sim_lock();
    for (int i = 0; i < SIM_RECORD_DEVICES; i++) {
        reads += record->devices[i].small_reads;
        known += record->devices[i].known_reads;
    }
    sim_unlock();
    if (ret_known != NULL) {
        *ret_known = known;
    }
    return reads;
}
