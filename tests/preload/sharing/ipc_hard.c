/* Sharing while memory is short, processes die or fork, and threads compete. */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ipc.h"
#include "processes.h"

/* Opens a handle from the pipe, and ends the process without closing it where told so. */
static CUdeviceptr open_next(void)
{
    CUdeviceptr address = 0;
    CUipcMemHandle handle;

    HOLD(receive(&handle, sizeof(handle)));
    MUST(open_handle(&address, &handle));
    return address;
}

static void share(CUdeviceptr address)
{
    CUipcMemHandle handle;

    MUST(get(&handle, address));
    send_to_other(&handle, sizeof(handle));
}

/* ---- pressure: a block that was spilled is shared, and stays shared and in place ---- */

enum { BLOCKS = 12, BLOCK_BYTES = 8 * MIB }; /* on a device of 64 MiB */

static void own_pressure(void)
{
    CUdeviceptr blocks[BLOCKS];

    for (int i = 0; i < BLOCKS; i++) {
        blocks[i] = allocate(BLOCK_BYTES);
        fill(blocks[i], BLOCK_BYTES, i);
    }
    /* The first blocks were spilled. */
    share(blocks[0]);
    share(blocks[1]);
    HOLD(hear() == '1');
    for (int turn = 0; turn < 5; turn++) {
        for (int i = 2; i < BLOCKS; i++) {
            HOLD(has(blocks[i], BLOCK_BYTES, i + turn));
            fill(blocks[i], BLOCK_BYTES, i + turn + 1);
        }
        fill(blocks[0], BLOCK_BYTES, 0x40 + turn);
        say('f');
        HOLD(hear() == 'w');
        HOLD(has(blocks[0], BLOCK_BYTES, 0x50 + turn));
        HOLD(has(blocks[1], BLOCK_BYTES, 0x60 + turn));
    }
    for (int i = 0; i < BLOCKS; i++) {
        MUST(cuMemFree(blocks[i]));
    }
    printf("owner: as written\n");
}

static void see_pressure(void)
{
    CUdeviceptr first, second;

    enter(0);
    first = open_next();
    second = open_next();
    HOLD(has(first, BLOCK_BYTES, 0) && has(second, BLOCK_BYTES, 1));
    say('1');
    for (int turn = 0; turn < 5; turn++) {
        HOLD(hear() == 'f');
        HOLD(has(first, BLOCK_BYTES, 0x40 + turn));
        fill(first, BLOCK_BYTES, 0x50 + turn);
        fill(second, BLOCK_BYTES, 0x60 + turn);
        say('w');
    }
    MUST(close_address(first));
    MUST(close_address(second));
    printf("other: as written\n");
}

/* ---- owner killed: here the second process owns the memory ---- */

static void own_killed(void)
{
    CUdeviceptr address = 0, other = 0;
    CUipcMemHandle opened, handle;
    char name[64];

    HOLD(receive(&opened, sizeof(opened)) && receive(&handle, sizeof(handle)));
    MUST(open_handle(&address, &opened));
    (void)snprintf(name, sizeof(name), "spillway-ipc-%d-", (int)other_pid);
    HOLD(count_lines("/proc/net/unix", name) > 0);
    HOLD(kill(other_pid, SIGKILL) == 0 && waitpid(other_pid, NULL, 0) == other_pid);
    other_pid = 0;
    HOLD(has(address, 4 * MIB, 0x77));
    fill(address, 4 * MIB, 0x78);
    HOLD(has(address, 4 * MIB, 0x78));
    printf("owner: opened after its end %d\n", open_handle(&other, &handle));
    MUST(open_handle(&other, &opened));
    HOLD(other == address);
    MUST(close_address(address));
    MUST(close_address(address));
    printf("owner: sockets left %d\n", count_lines("/proc/net/unix", name));
}

static void see_killed(void)
{
    CUdeviceptr first, second;

    enter(0);
    first = allocate(4 * MIB);
    second = allocate(4 * MIB);
    fill(first, 4 * MIB, 0x77);
    share(first);
    share(second);
    (void)pause();
}

/* ---- the other one killed ---- */

static void own_bereaved(void)
{
    CUdeviceptr address = allocate(16 * MIB);
    size_t before = free_bytes();

    fill(address, 16 * MIB, 0x11);
    share(address);
    HOLD(hear() == '1');
    HOLD(kill(other_pid, SIGKILL) == 0 && waitpid(other_pid, NULL, 0) == other_pid);
    other_pid = 0;
    HOLD(has(address, 16 * MIB, 0x12));
    fill(address, 16 * MIB, 0x13);
    HOLD(has(address, 16 * MIB, 0x13));
    HOLD(free_bytes() == before);
    MUST(cuMemFree(address));
    printf("owner: freed %d\n", free_bytes() == before + 16 * MIB);
}

static void see_bereaved(void)
{
    CUdeviceptr address;

    enter(0);
    address = open_next();
    HOLD(has(address, 16 * MIB, 0x11));
    fill(address, 16 * MIB, 0x12);
    say('1');
    (void)pause();
}

/* ---- forks: a child has no exports, and leaves the parent's alone ---- */

static int count_sockets(void)
{
    char link[64], target[64];
    int count = 0;

    for (int fd = 0; fd < 4096; fd++) {
        ssize_t length;

        (void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
        length = readlink(link, target, sizeof(target));
        count += length > 7 && strncmp(target, "socket:", 7) == 0;
    }
    return count;
}

static void own_forks(void)
{
    CUdeviceptr first = allocate(4 * MIB), second = allocate(4 * MIB);
    CUipcMemHandle handle;
    pid_t child;
    int ends[2], status, sockets = count_sockets(); /* a driver may have some of its own */

    MUST(get(&handle, first));
    MUST(get(&handle, second));
    HOLD(pipe(ends) == 0);
    child = fork();
    HOLD(child >= 0);
    if (child == 0) {
        char letter;

        (void)close(ends[1]);
        (void)(read(ends[0], &letter, 1) == 0); /* until the parent closes its end */
        exit(count_sockets() - sockets);
    }
    (void)close(ends[0]);
    offer(first, 4 * MIB, 0, 0x21);
    (void)close(ends[1]);
    HOLD(waitpid(child, &status, 0) == child);
    if (status != 0) {
        fprintf(stderr, "child: status %#x, its parent had %d sockets\n", (unsigned int)status,
                sockets);
    }
    HOLD(status == 0);
    offer(second, 4 * MIB, 0, 0x22);
    printf("owner: exchanged beside a child and after it\n");
}

static void see_forks(void)
{
    enter(0);
    printf("other: %ld opened\n", take_offers());
}

/* ---- threads: several export at once, while one writes to all blocks ---- */

enum { THREADS = 4, EACH = 12, SHARED = THREADS * EACH, SHARED_BYTES = 2 * MIB + 512 };

static CUdeviceptr shared[SHARED];
static struct offer offers[SHARED]; /* `byte` is what was written last */
static CUcontext common;
static _Atomic bool over;

static void *export_some(void *first)
{
    MUST(cuCtxSetCurrent(common));
    for (CUdeviceptr *at = first; at < (CUdeviceptr *)first + EACH; at++) {
        MUST(get(&offers[at - shared].handle, *at));
    }
    return NULL;
}

static void *write_to_all(void *unused)
{
    CUstream stream;

    (void)unused;
    MUST(cuCtxSetCurrent(common));
    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    for (int i = 0; !atomic_load(&over); i++) {
        struct offer *written = &offers[i % SHARED];

        written->byte = (written->byte + 1) & 0x7f;
        MUST(cuMemsetD8Async(shared[i % SHARED], (unsigned char)written->byte, SHARED_BYTES,
                             stream));
        if (i % 16 == 15) {
            MUST(cuStreamSynchronize(stream));
        }
    }
    MUST(cuStreamSynchronize(stream));
    return NULL;
}

static void own_threads(void)
{
    pthread_t exporters[THREADS], writer;

    MUST(cuCtxGetCurrent(&common));
    for (int i = 0; i < SHARED; i++) {
        shared[i] = allocate(SHARED_BYTES);
        offers[i] = (struct offer){.bytes = SHARED_BYTES, .byte = i};
        fill(shared[i], SHARED_BYTES, i);
    }
    HOLD(pthread_create(&writer, NULL, write_to_all, NULL) == 0);
    for (int i = 0; i < THREADS; i++) {
        HOLD(pthread_create(&exporters[i], NULL, export_some, &shared[i * EACH]) == 0);
    }
    for (int i = 0; i < THREADS; i++) {
        HOLD(pthread_join(exporters[i], NULL) == 0);
    }
    atomic_store(&over, true);
    HOLD(pthread_join(writer, NULL) == 0);
    for (int i = 0; i < SHARED; i++) {
        HOLD(has(shared[i], SHARED_BYTES, offers[i].byte));
        send_to_other(&offers[i], sizeof(offers[i]));
        HOLD(hear() == 'w');
        HOLD(has(shared[i], SHARED_BYTES, offers[i].byte ^ 0xff));
        MUST(cuMemFree(shared[i]));
    }
    printf("owner: as written\n");
}

/* ---- full: whether a block of NUMBER MiB can be shared on a device without other memory ---- */

static void own_full(void)
{
    size_t bytes = (size_t)number * MIB;
    CUdeviceptr address = allocate(bytes);
    struct offer made = {.bytes = bytes, .byte = 0x44};
    int result;

    fill(address, bytes, 0x44);
    result = get(&made.handle, address);
    printf("owner: shared %d\n", result);
    if (result == 0) {
        send_to_other(&made, sizeof(made));
        HOLD(hear() == 'w');
    }
    HOLD(has(address, bytes, result == 0 ? 0xbb : 0x44));
}

/* ---- refused: what cannot be shared, and can again afterwards ---- */

static void show(const char *what, CUdeviceptr address)
{
    CUipcMemHandle handle;

    printf("owner: %s %d\n", what, get(&handle, address));
}

static void own_refused(void)
{
    CUdeviceptr block = allocate(4 * MIB), registered = allocate(4 * MIB);
    unsigned int yes = 1;
    CUgraph graph;
    CUstream stream;

    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    MUST(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    show("in a capture", block);
    MUST(cuStreamEndCapture(stream, &graph));
    show("after it", block);
    MUST(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    show("again in one", block);
    MUST(cuStreamEndCapture(stream, &graph));
    /* The driver may refuse it for mapped memory; the library goes on to register. */
    (void)cuPointerSetAttribute(&yes, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, registered);
    show("registered", registered);
    (void)cuPointerSetAttribute(&yes, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, block);
    show("registered after it was shared", block);
    MUST(cuMemFree(registered));
    show("freed", registered);
}

static void see_nothing(void)
{
    HOLD(hear() == 0);
}

/* ---- contexts: they take what was exported and opened in them along ---- */

static void own_contexts(void)
{
    CUdeviceptr address = allocate(4 * MIB);
    int fds = count_fds();

    fill(address, 4 * MIB, 0x61);
    share(address);
    HOLD(hear() == '1');
    MUST(cuDevicePrimaryCtxReset(0));
    HOLD(count_fds() < fds + 2);
    say('2');
    HOLD(hear() == '3');
    enter(0);
    offer(allocate(4 * MIB), 4 * MIB, 0, 0x62);
    printf("owner: exchanged in a new context\n");
}

static void see_contexts(void)
{
    CUdeviceptr address = 0;
    CUipcMemHandle handle;

    enter(0);
    HOLD(receive(&handle, sizeof(handle)));
    MUST(open_handle(&address, &handle));
    HOLD(has(address, 4 * MIB, 0x61));
    say('1');
    HOLD(hear() == '2');
    HOLD(has(address, 4 * MIB, 0x61));
    MUST(cuDevicePrimaryCtxReset(0));
    enter(0);
    printf("other: after its context %d, closed %d\n", open_handle(&address, &handle),
           close_address(address));
    say('3');
    printf("other: %ld opened\n", take_offers());
}

/* ---- devices: memory of one device is mapped for another ---- */

static void own_devices(void)
{
    CUdeviceptr address = allocate(3 * MIB);

    offer(address, 3 * MIB, 0, 0x31);
    printf("owner: as written\n");
}

static void see_devices(void)
{
    enter(1);
    printf("other: %ld opened\n", take_offers());
}

const struct way hard_ways[] = {
    {"pressure", own_pressure, see_pressure},     {"owner_killed", own_killed, see_killed},
    {"other_killed", own_bereaved, see_bereaved}, {"forks", own_forks, see_forks},
    {"threads", own_threads, see_forks},          {"full", own_full, see_forks},
    {"refused", own_refused, see_nothing},        {"devices", own_devices, see_devices},
    {"contexts", own_contexts, see_contexts},     {NULL, NULL, NULL},
};
