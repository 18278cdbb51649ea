#include "sim/driver/core/neighbours.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "sim/devices.h"
#include "system/create.h"
#include "system/file_limit.h"
#include "system/pid.h"

enum { WAIT_S = 2 };

static struct sim_devices *file;         /* NULL: this process is alone */
static struct sim_devices_process *mine; /* NULL: this process only reads, or no slot was free */
static bool tried;

/* ---- the file ---- */

static void begin(struct sim_devices *devices)
{
    pthread_mutexattr_t attributes;

    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&devices->mutex, &attributes);
    pthread_mutexattr_destroy(&attributes);
    devices->version = SIM_DEVICES_VERSION;
    devices->bytes = sizeof(*devices);
    devices->magic = SIM_DEVICES_MAGIC;
}

/* The first process initialises the file under a file lock, which ends with the process. The other
 * processes wait for the file lock. The whole file is allocated at once, so that a full file system
 * is detected here and does not cause SIGBUS later. */
static struct sim_devices *map(int fd)
{
    struct sim_devices *devices = MAP_FAILED;
    struct stat status;

    if (flock(fd, LOCK_EX) == 0 && fstat(fd, &status) == 0 && S_ISREG(status.st_mode) &&
        spw_file_may_have(sizeof(*devices)) &&
        posix_fallocate(fd, 0, (off_t)sizeof(*devices)) == 0) {
        devices = mmap(NULL, sizeof(*devices), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    }
    if (devices == MAP_FAILED) {
        return NULL;
    }
    if (devices->magic == 0) {
        begin(devices);
    }
    if (devices->magic != SIM_DEVICES_MAGIC || devices->version != SIM_DEVICES_VERSION ||
        devices->bytes != sizeof(*devices)) {
        munmap(devices, sizeof(*devices));
        return NULL;
    }
    return devices;
}

static void attach(void)
{
    const char *folder = getenv("SPILLWAY_RUN_DIR");
    static char path[4096]; /* not on a stack, which may be small */
    int fd;

    if (tried || folder == NULL) {
        return;
    }
    tried = true;
    snprintf(path, sizeof(path), "%s/devices", folder);
    fd = spw_create_open(path, O_RDWR | O_CREAT | O_NOFOLLOW, 0600);
    if (fd >= 0) {
        file = map(fd);
        (void)flock(fd, LOCK_UN); /* close() would not release it: the mapping keeps the file open
                                   * and locked */
        close(fd);
    }
}

/* Takes the lock. False if its holder does not release it within WAIT_S. */
static bool lock(void)
{
    struct timespec until;
    int err;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += WAIT_S;
    err = pthread_mutex_timedlock(&file->mutex, &until);
    if (err == EOWNERDEAD) {
        err = pthread_mutex_consistent(&file->mutex);
    }
    return err == 0;
}

static void unlock(bool locked)
{
    if (locked) {
        pthread_mutex_unlock(&file->mutex);
    }
}

/* ---- slots ---- */

static bool is_alive(const struct sim_devices_process *process)
{
    uint64_t start;
    char state;

    if (access("/proc/self/stat", R_OK) != 0) {
        return true; /* nothing is known of other processes */
    }
    return spw_pid_start(process->pid, &start, &state) && state != 'Z' && state != 'X' &&
           (process->start == 0 || start == process->start);
}

/* After exec, a program gets the slot that the process already has, because its pid and start time
 * stay the same. */
static struct sim_devices_process *slot_of(int32_t pid, uint64_t start)
{
    for (uint32_t i = 0; i < file->process_count; i++) {
        struct sim_devices_process *process = &file->processes[i];

        if (process->pid == pid && process->start == start) {
            return process;
        }
    }
    if (file->process_count == SIM_DEVICES_PROCESSES) {
        return NULL;
    }
    return &file->processes[file->process_count++];
}

void sim_neighbours_start(void)
{
    int32_t pid = (int32_t)getpid();
    uint64_t start = 0;
    char state;
    bool locked;

    attach();
    if (file == NULL || mine != NULL) {
        return;
    }
    (void)spw_pid_start(0, &start, &state);
    locked = lock();
    mine = slot_of(pid, start);
    if (mine != NULL) {
        memset(mine->used, 0, sizeof(mine->used));
        mine->start = start;
        mine->pid = pid;
    }
    unlock(locked);
}

void sim_neighbours_forget(void)
{
    if (file != NULL) {
        munmap(file, sizeof(*file));
    }
    file = NULL;
    mine = NULL;
    tried = false;
}

/* ---- sums ---- */

/* Bytes of the other processes. `check`: first empties the slots of processes that have ended. */
static uint64_t sum_of_others(int index, bool check)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < file->process_count; i++) {
        struct sim_devices_process *process = &file->processes[i];

        if (process == mine || process->used[index] == 0) {
            continue;
        }
        if (check && !is_alive(process)) {
            memset(process->used, 0, sizeof(process->used));
        }
        bytes += process->used[index];
    }
    return bytes;
}

uint64_t sim_neighbours_used(int index)
{
    uint64_t bytes;
    bool locked;

    attach();
    if (file == NULL) {
        return 0;
    }
    locked = lock();
    bytes = sum_of_others(index, /* check */ true);
    unlock(locked);
    return bytes;
}

static void note_peak(int index, uint64_t bytes)
{
    if (bytes <= file->peak[index]) {
        return;
    }
    file->peak[index] = bytes;
    for (uint32_t i = 0; i < file->process_count; i++) {
        file->processes[i].at_peak[index] = file->processes[i].used[index];
    }
}

bool sim_neighbours_grow(int index, uint64_t total, uint64_t used, uint64_t more,
                         uint64_t *ret_free)
{
    uint64_t others = 0;
    bool locked, fits;

    if (mine == NULL) {
        *ret_free = total - used;
        return more <= total - used;
    }
    locked = lock();
    others = sum_of_others(index, /* check */ false);
    if (others > 0 && (others + used + more > total || others + used + more > file->peak[index])) {
        others = sum_of_others(index, /* check */ true);
    }
    *ret_free = others + used < total ? total - used - others : 0;
    fits = more <= *ret_free;
    if (fits) {
        mine->used[index] = used + more;
        note_peak(index, others + used + more);
    }
    unlock(locked);
    return fits;
}

void sim_neighbours_hold(int index, uint64_t used)
{
    if (mine != NULL) {
        bool locked = lock(), more = used > mine->used[index];

        mine->used[index] = used;
        if (more) {
            note_peak(index, sum_of_others(index, /* check */ false) + used);
        }
        unlock(locked);
    }
}

void sim_neighbours_die(int index)
{
    if (file != NULL) {
        bool locked = lock();

        file->died[index] = 1;
        unlock(locked);
    }
}

bool sim_neighbours_died(int index)
{
    return file != NULL && file->died[index] != 0;
}

int sim_neighbours_list(int index, struct sim_neighbour *ret_list, int most)
{
    int count = 0;
    bool locked;

    attach();
    if (file == NULL) {
        return 0;
    }
    locked = lock();
    (void)sum_of_others(index, /* check */ true);
    for (uint32_t i = 0; i < file->process_count; i++) {
        const struct sim_devices_process *process = &file->processes[i];

        if (process->used[index] > 0) {
            if (count < most) {
                ret_list[count] = (struct sim_neighbour){process->pid, process->used[index]};
            }
            count++;
        }
    }
    unlock(locked);
    return count;
}
