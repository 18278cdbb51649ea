/* Sharing where something odd happens: captures and forks beside what is open, threads that open
 * one handle at once, processes without descriptors, owners that do not answer. */
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ipc.h"
#include "processes.h"

int spillway_sim_fail(const char *list); /* of the simulated driver */

static void send_handle(CUdeviceptr address)
{
    CUipcMemHandle handle;

    MUST(get(&handle, address));
    send_to_other(&handle, sizeof(handle));
}

static CUipcMemHandle next_handle(void)
{
    CUipcMemHandle handle;

    HOLD(receive(&handle, sizeof(handle)));
    return handle;
}

static CUdeviceptr open_next(void)
{
    CUipcMemHandle handle = next_handle();
    CUdeviceptr address = 0;

    MUST(open_handle(&address, &handle));
    return address;
}

/* ---- several: blocks that are open side by side ---- */

static void own_several(void)
{
    CUdeviceptr first = allocate(4 * MIB), second = allocate(3 * MIB + 512);

    fill(first, 4 * MIB, 1);
    fill(second, 3 * MIB + 512, 2);
    send_handle(first);
    send_handle(second);
    HOLD(hear() == 'e');
}

/* Each address is that of its own block, whichever of base and size is asked for. */
static void ask_for_range(CUdeviceptr block, size_t bytes)
{
    CUdeviceptr base = 0;
    size_t size = 0;

    MUST(cuMemGetAddressRange(&base, &size, block + bytes - 1));
    HOLD(base == block && size == bytes);
    base = size = 0;
    MUST(cuMemGetAddressRange(&base, NULL, block));
    MUST(cuMemGetAddressRange(NULL, &size, block));
    HOLD(base == block && size == bytes);
}

/* A capture forbids to wait for the context, which closing does. */
static int close_in_a_capture(CUdeviceptr address)
{
    CUstream stream;
    CUgraph graph = NULL;
    int result;

    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    MUST(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    result = close_address(address);
    (void)cuStreamEndCapture(stream, &graph);
    MUST(cuStreamDestroy(stream));
    return result;
}

/* A child has nothing open, and no part in what its parent has. */
static int is_open_in_a_child(CUdeviceptr address)
{
    pid_t child;
    int status = -1;

    (void)fflush(stdout);
    child = fork();
    HOLD(child >= 0);
    if (child == 0) {
        CUdeviceptr base;
        size_t size;

        exit(cuMemGetAddressRange(&base, &size, address) == CUDA_SUCCESS);
    }
    HOLD(waitpid(child, &status, 0) == child && WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void see_several(void)
{
    CUdeviceptr first, second;

    enter(0);
    first = open_next();
    second = open_next();
    ask_for_range(first, 4 * MIB);
    ask_for_range(second, 3 * MIB + 512);
    printf("other: closed in a capture %d\n", close_in_a_capture(first) == 0);
    ask_for_range(first, 4 * MIB);
    HOLD(has(first, 4 * MIB, 1) && has(second, 3 * MIB + 512, 2));
    printf("other: open in a child %d\n", is_open_in_a_child(second));
    HOLD(has(second, 3 * MIB + 512, 2));
    printf("other: closed %d", close_address(first));
    printf(", %d", close_address(second));
    printf(", again %d\n", close_address(first));
    say('e');
}

/* ---- race: threads open one handle at once, and have one mapping ---- */

enum { OPENERS = 4, WARM = 10 };

static struct {
    pthread_barrier_t start;
    CUcontext context;
    CUipcMemHandle handle;
} race;

static void own_race(void)
{
    for (long i = 0; i < number; i++) {
        CUdeviceptr address = allocate(2 * MIB);

        fill(address, 2 * MIB, (int)i & 0x7f);
        send_handle(address);
        HOLD(hear() == 'e');
        MUST(cuMemFree(address));
    }
}

static void *open_at_once(void *ret_address)
{
    MUST(cuCtxSetCurrent(race.context));
    (void)pthread_barrier_wait(&race.start);
    MUST(open_handle(ret_address, &race.handle));
    return NULL;
}

static void see_race(void)
{
    int maps = 0;

    enter(0);
    MUST(cuCtxGetCurrent(&race.context));
    HOLD(pthread_barrier_init(&race.start, NULL, OPENERS) == 0);
    for (long i = 0; i < number; i++) {
        CUdeviceptr addresses[OPENERS] = {0};
        pthread_t threads[OPENERS];

        race.handle = next_handle();
        for (int k = 0; k < OPENERS; k++) {
            HOLD(pthread_create(&threads[k], NULL, open_at_once, &addresses[k]) == 0);
        }
        for (int k = 0; k < OPENERS; k++) {
            HOLD(pthread_join(threads[k], NULL) == 0);
            HOLD(addresses[k] == addresses[0]);
        }
        for (int k = 0; k < OPENERS; k++) {
            HOLD(has(addresses[0], 2 * MIB, (int)i & 0x7f));
            MUST(close_address(addresses[0]));
        }
        HOLD(close_address(addresses[0]) != 0);
        say('e');
        maps = i < WARM ? count_lines("/proc/self/maps", NULL) : maps;
    }
    printf("other: %ld opened\n", number);
    /* The C library may have mapped some more for its threads, but not one in each round. */
    printf("other: mappings %s\n",
           count_lines("/proc/self/maps", NULL) <= maps + 4 * OPENERS ? "as before" : "more");
}

/* ---- starved: no descriptor is left, here and there ---- */

static struct rlimit usual;

static void starve(void)
{
    struct rlimit least;
    int lowest = dup(STDIN_FILENO);

    HOLD(lowest >= 0 && close(lowest) == 0 && getrlimit(RLIMIT_NOFILE, &usual) == 0);
    least = (struct rlimit){.rlim_cur = (rlim_t)lowest, .rlim_max = usual.rlim_max};
    HOLD(setrlimit(RLIMIT_NOFILE, &least) == 0);
}

static void feed(void)
{
    HOLD(setrlimit(RLIMIT_NOFILE, &usual) == 0);
}

static int get_starving(CUdeviceptr address)
{
    CUipcMemHandle handle;
    int result;

    starve();
    result = get(&handle, address);
    feed();
    return result;
}

static void own_starved(void)
{
    CUdeviceptr first = allocate(4 * MIB), second = allocate(4 * MIB);

    fill(first, 4 * MIB, 0x51);
    fill(second, 4 * MIB, 0x52);
    printf("owner: without a socket %d\n", get_starving(first));
    send_handle(first);
    printf("owner: without a descriptor %d\n", get_starving(second));
    HOLD(has(first, 4 * MIB, 0x51) && has(second, 4 * MIB, 0x52));
    HOLD(hear() == 'e');
    send_handle(second);
    HOLD(hear() == 'e');
}

static void see_starved(void)
{
    CUdeviceptr address = 0;
    CUipcMemHandle handle;
    int result;

    enter(0);
    handle = next_handle();
    starve();
    result = open_handle(&address, &handle);
    feed();
    printf("other: without a descriptor %d\n", result);
    MUST(open_handle(&address, &handle));
    HOLD(has(address, 4 * MIB, 0x51));
    say('e');
    HOLD(has(open_next(), 4 * MIB, 0x52));
    say('e');
}

/* ---- stopped: the owner, which is the second process, does not answer ---- */

static void open_of_stopped(void)
{
    CUdeviceptr address = 0;
    CUipcMemHandle handle;
    int status;

    HOLD(receive(&handle, sizeof(handle)));
    HOLD(kill(other_pid, SIGSTOP) == 0);
    HOLD(waitpid(other_pid, &status, WUNTRACED) == other_pid && WIFSTOPPED(status));
    printf("owner: opened while it is stopped %d\n", open_handle(&address, &handle));
    HOLD(kill(other_pid, SIGCONT) == 0);
    MUST(open_handle(&address, &handle));
    HOLD(has(address, 4 * MIB, 0x61));
    MUST(close_address(address));
}

static void be_stopped(void)
{
    CUdeviceptr address;

    enter(0);
    address = allocate(4 * MIB);
    fill(address, 4 * MIB, 0x61);
    send_handle(address);
    HOLD(hear() == 0);
}

/* ---- unable: what opening answers ---- */

static void own_unable(void)
{
    send_handle(allocate(4 * MIB));
    HOLD(hear() == 'e');
}

static void see_unable(void)
{
    CUdeviceptr address = 0;
    CUipcMemHandle handle;

    enter(0);
    handle = next_handle();
    printf("other: opened %d\n", open_handle(&address, &handle));
    say('e');
}

/* ---- stranger: the other process becomes another user for a while ---- */

static void see_stranger(void)
{
    enum { NOBODY = 65534 };
    CUdeviceptr address = 0;
    CUipcMemHandle handle;

    enter(0);
    handle = next_handle();
    HOLD(seteuid(NOBODY) == 0);
    printf("other: opened as another user %d\n", open_handle(&address, &handle));
    HOLD(seteuid(0) == 0);
    printf("other: opened %d\n", open_handle(&address, &handle));
    say('e');
}

/* ---- unused: a block that has no memory yet gets it when it is shared; WORD `refused`: the driver
 * has none at first ---- */

static void own_unused(void)
{
    CUdeviceptr address = allocate(4 * MIB);
    CUipcMemHandle handle;

    if (strcmp(word, "refused") == 0) {
        MUST(spillway_sim_fail("cuMemCreate:1+"));
        printf("owner: refused %d\n", get(&handle, address));
        MUST(spillway_sim_fail(NULL));
    }
    MUST(get(&handle, address));
    send_to_other(&handle, sizeof(handle));
    HOLD(hear() == 'w');
    HOLD(has(address, 4 * MIB, 0x71));
}

static void see_unused(void)
{
    CUdeviceptr address;

    enter(0);
    address = open_next();
    fill(address, 4 * MIB, 0x71);
    say('w');
    printf("other: 1 opened\n");
}

const struct way odd_ways[] = {
    {"several", own_several, see_several},  {"race", own_race, see_race},
    {"starved", own_starved, see_starved},  {"stopped", open_of_stopped, be_stopped},
    {"unused", own_unused, see_unused},     {"unable", own_unable, see_unable},
    {"stranger", own_unable, see_stranger}, {NULL, NULL, NULL},
};
