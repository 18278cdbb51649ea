/* Allocates and frees at random, on a stream of each thread, for a recording to be made of.
 *
 *     recorded ROUNDS [THREADS [early | late | full | fuller | named | marks | closed]]
 *
 * ROUNDS 0: until it is killed. Writes "N" lines to stdout: so many allocations and frees were made
 * before. early: a child does the same first, before its parent uses CUDA; late: after some rounds,
 * children are made, which must not hold the recording open, and end at once; full: the file system
 * refuses a recording's second MiB; fuller: and the first; named: a file needs a name from the
 * start; marks: the program marks parts and steps in great number first; closed: after some rounds
 * it closes the recording's descriptor, and opens a file of its own under the number. */
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

enum { LIVE = 32, THREADS_MOST = 16, SAY_EVERY = 50, MARKS = 5000, FDS_MOST = 4096 };

static unsigned long rounds;
static int (*mark_step)(void);

static bool disk_is_full, needs_names;
static off_t room = 1 << 20; /* of a recording, then */

/* Replaces the C library's function, by which a file without a name gets one. */
__attribute__((visibility("default"))) int linkat(int from, const char *name, int to,
                                                  const char *new_name, int flags)
{
    if (needs_names) {
        errno = ENOENT;
        return -1;
    }
    return (int)syscall(SYS_linkat, from, name, to, new_name, flags);
}

/* Replaces the C library's function, by which the recording grows. The name of a file that had none
 * is one of a deleted file, for ever. */
__attribute__((visibility("default"))) int posix_fallocate(int fd, off_t offset, off_t length)
{
    char link[64], name[256] = "";

    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    if (disk_is_full && readlink(link, name, sizeof(name) - 1) > 0 &&
        (strstr(name, "recording") != NULL || strstr(name, "(deleted)") != NULL) &&
        offset >= room) {
        return ENOSPC;
    }
    return syscall(SYS_fallocate, fd, 0, offset, length) == 0 ? 0 : errno;
}

static uint32_t draw(uint32_t *state)
{
    *state = *state * 1664525 + 1013904223;
    return *state >> 8;
}

/* A part inside another, and a step, again and again. */
static void mark_many(void)
{
    int (*begin)(const char *), (*end)(const char *);

    *(void **)(void *)&begin = dlsym(RTLD_DEFAULT, "spillway_mark_begin");
    *(void **)(void *)&end = dlsym(RTLD_DEFAULT, "spillway_mark_end");
    HOLD(begin != NULL && end != NULL);
    for (int i = 0; i < MARKS; i++) {
        MUST(begin("outer"));
        MUST(begin("inner"));
        MUST(mark_step());
        MUST(end("inner"));
        MUST(end("outer"));
    }
    MUST(end("never begun"));
}

static void *churn(void *argument)
{
    uint32_t state = (uint32_t)(uintptr_t)argument;
    void *blocks[LIVE] = {0};
    cudaStream_t stream;
    unsigned long calls = 0;

    MUST(cudaStreamCreate(&stream));
    for (unsigned long round = 0; rounds == 0 || round < rounds; round++) {
        uint32_t slot = draw(&state) % LIVE;
        size_t bytes = (size_t)1 << (draw(&state) % 12 + 8);

        if (blocks[slot] != NULL) {
            MUST(cudaFreeAsync(blocks[slot], stream));
            calls++;
        }
        MUST(cudaMallocAsync(&blocks[slot], bytes + draw(&state) % 512, stream));
        if (++calls % SAY_EVERY == 0 && argument == (void *)1) {
            printf("%lu\n", calls);
            fflush(stdout);
        }
        if (mark_step != NULL && round % 100 == 0) {
            MUST(mark_step());
        }
    }
    for (int i = 0; i < LIVE / 2; i++) {
        if (blocks[i] != NULL) {
            MUST(cudaFreeAsync(blocks[i], stream));
        }
    }
    return NULL;
}

/* The descriptor of the recording, which has the lock of the file; -1: this process has none. */
static int find_recording(void)
{
    struct stat recording, other;

    HOLD(stat(getenv("SPILLWAY_RECORD"), &recording) == 0);
    for (int fd = 0; fd < FDS_MOST; fd++) {
        if (fstat(fd, &other) == 0 && other.st_dev == recording.st_dev &&
            other.st_ino == recording.st_ino) {
            return fd;
        }
    }
    return -1;
}

/* Closes the recording's descriptor, and opens a file of its own under the number. */
static void take_number(void)
{
    char path[4096];
    int mine;

    (void)snprintf(path, sizeof(path), "%s.mine", getenv("SPILLWAY_RECORD"));
    mine = open(path, O_RDWR | O_CREAT, 0666);
    HOLD(write(mine, "mine", 4) == 4 && dup2(mine, find_recording()) > 0);
}

/* Makes a child that the C library does not know of, which ends as the program does. */
static void end_unseen(void)
{
    pid_t child = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    int status;

    if (child == 0) {
        exit(0);
    }
    HOLD(waitpid(child, &status, 0) == child && status == 0);
}

int main(int argc, char **argv)
{
    int threads = argc > 2 ? atoi(argv[2]) : 1;
    pthread_t others[THREADS_MOST];
    int status = 0;

    HOLD(argc > 1 && threads >= 1 && threads < THREADS_MOST);
    rounds = strtoul(argv[1], NULL, 10);
    *(void **)(void *)&mark_step = dlsym(RTLD_DEFAULT, "spillway_mark_step");
    disk_is_full = argc > 3 && strncmp(argv[3], "full", 4) == 0;
    room = argc > 3 && strcmp(argv[3], "fuller") == 0 ? 0 : room;
    needs_names = argc > 3 && strcmp(argv[3], "named") == 0;
    if (argc > 3 && strcmp(argv[3], "marks") == 0) {
        MUST(cudaFree(NULL));
        mark_many();
    } else if (argc > 3 && strcmp(argv[3], "closed") == 0) {
        (void)churn((void *)1);
        take_number();
    } else if (argc > 3 && !disk_is_full && !needs_names) {
        bool late = strcmp(argv[3], "late") == 0;
        pid_t child;

        if (late) {
            (void)churn((void *)1);
            HOLD(find_recording() >= 0);
        } else {
            (void)usleep(30000); /* start times of processes are known to 10 ms */
        }
        child = fork();
        if (child == 0 && !late) {
            (void)churn((void *)1);
        }
        if (child == 0) {
            exit(late && find_recording() >= 0);
        }
        if (late) {
            end_unseen();
        }
        HOLD(waitpid(child, &status, 0) == child);
        printf("child: %d\n", status);
    }
    for (int i = 1; i < threads; i++) {
        HOLD(pthread_create(&others[i], NULL, churn, (void *)((uintptr_t)i + 1)) == 0);
    }
    (void)churn((void *)1);
    for (int i = 1; i < threads; i++) {
        HOLD(pthread_join(others[i], NULL) == 0);
    }
    return 0;
}
