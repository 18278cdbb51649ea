#include "cli/inspect/control.h"

#include "system/clock.h"
#include "system/futex.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>

enum {
    LOOK_MS = 100,
    START_MS = 500,
    START_LOOK_MS = 10,
    NS_PER_MS = 1000000,
    ERROR_MASK = 0xffff
};

/* Opens the file of the statistics again, for writing. */
static int open_for_writing(const struct spw_cli_watched *watched)
{
    char path[64];

    snprintf(path, sizeof(path), "/proc/self/fd/%d", watched->stats_file);
    return open(path, O_RDWR | O_CLOEXEC);
}

bool spw_cli_control_open(const struct spw_cli_watched *watched,
                          struct spw_cli_control *ret_control)
{
    int fd = open_for_writing(watched);
    struct spw_stats *stats = MAP_FAILED;
    struct stat status;

    if (fd >= 0 && fstat(fd, &status) == 0 && status.st_size >= (off_t)sizeof(*stats)) {
        stats = mmap(NULL, sizeof(*stats), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    }
    if (fd >= 0) {
        close(fd);
    }
    if (stats == MAP_FAILED) {
        return false;
    }
    *ret_control = (struct spw_cli_control){
        .shared = &stats->control, .mapping = stats, .bytes = sizeof(*stats)};
    return true;
}

void spw_cli_control_close(struct spw_cli_control *control)
{
    (void)munmap(control->mapping, control->bytes);
}

bool spw_cli_control_await_listener(const struct spw_cli_control *control)
{
    static const struct timespec pause = {.tv_nsec = (long)START_LOOK_MS * NS_PER_MS};
    uint64_t end = spw_clock_ns() + (uint64_t)START_MS * NS_PER_MS;

    while (atomic_load(&control->shared->state) == SPW_CONTROL_NONE) {
        if (spw_clock_ns() >= end) {
            return false;
        }
        (void)nanosleep(&pause, NULL);
    }
    return true;
}

void spw_cli_control_send(struct spw_cli_control *control, const struct spw_cli_request *request)
{
    struct spw_stats_control *shared = control->shared;

    atomic_store(&shared->part, (uint32_t)request->part);
    snprintf(shared->name, sizeof(shared->name), "%s", request->name != NULL ? request->name : "");
    snprintf(shared->folder, sizeof(shared->folder), "%s",
             request->folder != NULL ? request->folder : "");
    atomic_store(&shared->wait_ms, request->wait_ms);
    atomic_store(&shared->action, (uint32_t)request->action);
    control->number = atomic_fetch_add(&shared->requests, 1) + 1;
    spw_futex_wake(&shared->requests);
}

static void read_answer(const struct spw_stats_control *shared, struct spw_cli_answer *ret_answer)
{
    uint32_t outcome = atomic_load(&shared->outcome);

    *ret_answer = (struct spw_cli_answer){
        .outcome = outcome < SPW_CONTROL_OUTCOMES ? (enum spw_control_outcome)outcome
                                                  : SPW_CONTROL_IMPOSSIBLE,
        .moved_bytes = atomic_load(&shared->moved_bytes),
        .left_bytes = atomic_load(&shared->left_bytes),
        .host_full = atomic_load(&shared->host_full) != 0,
        .error = (int)(atomic_load(&shared->error) & ERROR_MASK),
    };
}

bool spw_cli_control_await(struct spw_cli_control *control, const struct spw_cli_watched *watched,
                           uint32_t most_ms, struct spw_cli_answer *ret_answer)
{
    const struct timespec look = {.tv_nsec = (long)LOOK_MS * NS_PER_MS};
    struct spw_stats_control *shared = control->shared;

    for (uint32_t waited = 0; waited < most_ms && spw_cli_watched_lives(watched);
         waited += LOOK_MS) {
        uint32_t answered = atomic_load(&shared->answered);

        if ((int32_t)(answered - control->number) >= 0) {
            read_answer(shared, ret_answer);
            return true;
        }
        spw_futex_wait(&shared->answered, answered, &look);
    }
    return false;
}
