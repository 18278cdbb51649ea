#include "stats/stats.h"

#include "stats/remap.h"
#include "system/backoff.h"
#include "system/create.h"
#include "system/fd.h"
#include "system/file_limit.h"
#include "system/pid.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { CLAIM_NS = 5000000 };
enum { MOST_IMAGES = 16 }; /* a process may execute one program after the other */

/* The mapping of this process. Its address never changes. */
static struct {
    struct spw_stats *_Atomic stats;
    struct spw_stats private_stats; /* used when nothing can be mapped */
} process;

/* Opens a new file for the mapping in the launcher's folder; -1 when there is none. */
static int open_in_run_dir(char path[SPW_STATS_PATH])
{
    const char *folder = spw_option_environment("SPILLWAY_RUN_DIR");

    for (int image = 0; folder != NULL && image < MOST_IMAGES; image++) {
        int fd;

        snprintf(path, SPW_STATS_PATH, image == 0 ? "%s/%d" : "%s/%d.%d", folder, (int)getpid(),
                 image);
        fd = spw_create_open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
        if (fd >= 0 || errno != EEXIST) {
            return fd;
        }
    }
    return -1;
}

/* Maps `fd` over the previous mapping, or anywhere at the first time. The file is allocated at
 * once, so that a full file system is an error here and not a SIGBUS in the program. */
static struct spw_stats *map_file(int fd, struct spw_stats *previous)
{
    const size_t bytes = sizeof(struct spw_stats);
    int flags = MAP_SHARED | (previous != NULL ? MAP_FIXED : 0);
    void *address;

    if (fd < 0 || !spw_file_may_have(bytes) || posix_fallocate(fd, 0, (off_t)bytes) != 0) {
        return NULL;
    }
    address = mmap(previous, bytes, PROT_READ | PROT_WRITE, flags, fd, 0);
    return address != MAP_FAILED ? address : NULL;
}

static struct spw_stats *map_any(struct spw_stats *previous)
{
    char path[SPW_STATS_PATH];
    struct spw_stats *stats;
    int fd;

    spw_stats_output_begin("");
    if (previous == &process.private_stats) {
        return previous;
    }
    fd = open_in_run_dir(path);
    stats = map_file(fd, previous);
    if (fd >= 0) {
        close(fd);
    }
    if (stats != NULL) {
        spw_stats_output_begin(path);
        return stats;
    }
    fd = memfd_create("spillway-stats", MFD_CLOEXEC);
    stats = map_file(fd, previous);
    if (stats != NULL) {
        spw_fd_park(fd); /* stays open: others find it in /proc/PID/fd */
        return stats;
    }
    if (fd >= 0) {
        close(fd);
    }
    return previous != NULL ? previous : &process.private_stats;
}

struct spw_stats *spw_stats_create(void)
{
    struct spw_stats *stats = map_any(atomic_load(&process.stats));
    char state;

    stats->magic = SPW_STATS_MAGIC;
    stats->version = SPW_STATS_VERSION;
    stats->bytes = sizeof(*stats);
    stats->pid = (int)getpid();
    spw_pid_start(0, &stats->start, &state);
    atomic_store(&process.stats, stats);
    return stats;
}

struct spw_stats *spw_stats_mine(void)
{
    return atomic_load(&process.stats);
}

bool spw_stats_claim(atomic_flag *busy)
{
    struct spw_backoff backoff = {.limit_ns = CLAIM_NS};

    while (atomic_flag_test_and_set_explicit(busy, memory_order_acquire)) {
        if (!spw_backoff_pause(&backoff)) {
            return false;
        }
    }
    return true;
}

void spw_stats_unclaim(atomic_flag *busy)
{
    atomic_flag_clear_explicit(busy, memory_order_release);
}

void spw_stats_refuse(struct spw_stats_refusal *refusal, const char *api, uint64_t number,
                      uint64_t bytes, uint64_t missing_bytes)
{
    struct spw_stats_refused *last = &refusal->last;
    bool pending = atomic_load(&refusal->pending_bytes) > 0;
    int tid = (int)syscall(SYS_gettid);
    struct timespec now;

    if (!spw_stats_claim(&refusal->busy)) {
        return;
    }
    if (!pending || last->bytes != bytes || last->tid != tid) {
        refusal->requests++;
        refusal->lost = pending ? *last : refusal->lost;
    }
    clock_gettime(CLOCK_MONOTONIC, &now);
    last->number = number;
    last->bytes = bytes;
    last->missing_bytes = missing_bytes;
    last->time_ns = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
    last->tid = tid;
    snprintf(last->api, sizeof(last->api), "%s", api);
    prctl(PR_GET_NAME, last->thread);
    atomic_store(&refusal->pending_bytes, bytes);
    atomic_fetch_add(&refusal->count, 1);
    spw_stats_unclaim(&refusal->busy);
}

void spw_stats_overcome(struct spw_stats_refusal *refusal)
{
    if (!spw_stats_claim(&refusal->busy)) {
        return;
    }
    refusal->overcome += atomic_exchange(&refusal->pending_bytes, 0) > 0;
    spw_stats_unclaim(&refusal->busy);
}

bool spw_stats_forget(void)
{
    struct spw_stats *stats = atomic_load(&process.stats);

    spw_stats_output_begin("");
    if (stats == &process.private_stats) {
        memset(stats, 0, sizeof(*stats));
        return true;
    }
    return stats == NULL || spw_stats_remap_zeroed(stats, sizeof(*stats));
}

#define TERMINATE(text) ((text)[sizeof(text) - 1] = '\0')

/* Makes a bool valid: its memory may hold any byte. */
static void make_bool(bool *value)
{
    unsigned char byte;

    memcpy(&byte, value, sizeof(byte));
    *value = byte != 0;
}

static void distrust_oom(struct spw_stats_oom *oom)
{
    make_bool(&oom->usage_known);
    TERMINATE(oom->api);
    TERMINATE(oom->label);
    TERMINATE(oom->rule);
    if (oom->holder_count < 0 || oom->holder_count > SPW_STATS_HOLDERS) {
        oom->holder_count = 0;
    }
    for (int i = 0; i < SPW_STATS_HOLDERS; i++) {
        TERMINATE(oom->holders[i].label);
    }
}

/* Terminates every text, limits counts, and releases records whose thread was killed. */
static void distrust(struct spw_stats *stats)
{
    stats->summary = stats->summary <= SPW_SUMMARY_ON ? stats->summary : SPW_SUMMARY_OFF;
    make_bool(&stats->of_rank);
    make_bool(&stats->simulated);
    make_bool(&stats->safe);
    atomic_flag_clear(&stats->oom.busy);
    TERMINATE(stats->mode);
    TERMINATE(stats->why);
    TERMINATE(stats->process);
    TERMINATE(stats->sites);
    TERMINATE(stats->policy);
    TERMINATE(stats->control.name);
    for (int i = 0; i < SPW_ACCOUNTS; i++) {
        TERMINATE(stats->rule_names[i]);
    }
    for (int i = 0; i < SPW_STATS_CALLS; i++) {
        TERMINATE(stats->call_names[i]);
    }
    distrust_oom(&stats->oom);
    for (int i = 0; i < SPW_DEVICES_MAX; i++) {
        atomic_flag_clear(&stats->devices[i].refusal.busy);
        TERMINATE(stats->devices[i].refusal.last.api);
        TERMINATE(stats->devices[i].refusal.last.thread);
        TERMINATE(stats->devices[i].refusal.lost.api);
        TERMINATE(stats->devices[i].refusal.lost.thread);
    }
    if (atomic_load(&stats->control.state) > SPW_CONTROL_PAUSED_ON_DEMAND) {
        atomic_store(&stats->control.state, SPW_CONTROL_NONE);
    }
    if (stats->rank < 0 || stats->rank > INT32_MAX) {
        stats->rank = -1;
    }
    if (stats->device_count < 0 || stats->device_count > SPW_DEVICES_MAX) {
        stats->device_count = 0;
    }
}

bool spw_stats_read(int fd, struct spw_stats *ret_stats)
{
    if (!spw_fd_read_at(fd, ret_stats, sizeof(*ret_stats), 0) ||
        ret_stats->magic != SPW_STATS_MAGIC || ret_stats->version != SPW_STATS_VERSION ||
        ret_stats->bytes != sizeof(*ret_stats)) {
        return false;
    }
    distrust(ret_stats);
    return true;
}

struct spw_stats *spw_stats_open(const char *path)
{
    int fd = spw_fd_open_regular(path);
    struct spw_stats *stats;
    bool read;

    if (fd < 0) {
        return NULL;
    }
    stats = mmap(NULL, sizeof(*stats), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    read = stats != MAP_FAILED && spw_stats_read(fd, stats);
    close(fd);
    if (!read && stats != MAP_FAILED) {
        spw_stats_close(stats);
    }
    return read ? stats : NULL;
}

void spw_stats_close(struct spw_stats *stats)
{
    if (stats != NULL) {
        munmap(stats, sizeof(*stats));
    }
}
