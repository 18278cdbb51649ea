/* Does at random what programs do with CUDA, and checks the content of all memory.
 *
 *     chaos SEED [OPTION...]
 *
 *     threads=N steps=N devices=N size=N   N threads of N acts, on so many devices, with blocks of
 *                                          up to 2 to the power of N bytes
 *     spread=N                             the smallest have that many powers of two less
 *     forks contexts captures signals      these happen as well
 *     functions                            as do host functions that wait for a mutex, whose owner
 *                                          frees memory; holds: it allocates some, too
 *     storm                                in the end, threads allocate and free at the same
 * instant faults                               calls of the driver are made to fail allow=CODE a
 * CUresult that calls may answer leave=WAY                            at the end of main (return),
 * from main while threads work (exit, quick), or by a signal at some time (kill, term); reset: it
 * destroys the primary contexts before RESOURCE=N deny=CALL                 takes that from the
 * process (confine.c), before CUDA is late:RESOURCE=N late:deny=CALL       initialised, or after
 * its first use
 *
 * Exit status 0: every call succeeded or failed with an error that is allowed, and all content was
 * right. 3: it was not; stdout has a line for each finding. 2: the options are wrong. The last line
 * counts what was done. */
#include "chaos.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "errors.h"

enum { FINDINGS = 3, USAGE = 2, THREADS = 16, WORDS = 32 };

struct options options = {
    .threads = 1, .steps = 200, .devices = 1, .size_log2 = 22, .spread = 99, .leave = "return"};

struct program program = {.world = PTHREAD_RWLOCK_INITIALIZER,
                          .shelf_lock = PTHREAD_MUTEX_INITIALIZER};

static pthread_t threads[THREADS];
static _Atomic bool signals_over;
static _Atomic int ended; /* threads */
static const char *late_words[WORDS];
static int late_count;

uint32_t draw(struct worker *worker, uint32_t below)
{
    worker->random ^= worker->random << 13;
    worker->random ^= worker->random >> 17;
    worker->random ^= worker->random << 5;
    return worker->random % below;
}

bool once_in(struct worker *worker, uint32_t times)
{
    return draw(worker, times) == 0;
}

void go_to(struct worker *worker, CUcontext context)
{
    enum { TRIES = 3 };

    for (int i = 0; i < TRIES; i++) {
        if (ok(cuCtxSetCurrent(context), "cuCtxSetCurrent")) {
            return;
        }
    }
    worker->stopped = true;
}

/* ---- what a thread does ---- */

static void use_block(struct worker *worker)
{
    struct block *block = &worker->blocks[draw(worker, BLOCKS)];
    struct block *other = &worker->blocks[draw(worker, BLOCKS)];

    if (block->address == 0) {
        (void)block_allocate(worker, block);
        return;
    }
    switch (draw(worker, 10)) {
    case 0:
    case 1:
        block_check(worker, block);
        block_free(worker, block);
        break;
    case 2:
        block_free(worker, block);
        break;
    case 3:
    case 4:
        block_check(worker, block);
        break;
    case 5:
        if (other != block && other->address != 0 && !other->lost && !block->lost) {
            block_copy(worker, block, other);
        }
        break;
    default:
        block_write(worker, block);
    }
}

/* Exchanges a block with one that another thread left. */
static void exchange(struct worker *worker)
{
    struct block *block = &worker->blocks[draw(worker, BLOCKS)], taken;
    struct block *place = &program.shelf[draw(worker, SHELF)];

    if (block->lost) {
        return;
    }
    pthread_mutex_lock(&program.shelf_lock);
    taken = *place;
    *place = *block;
    *block = taken;
    pthread_mutex_unlock(&program.shelf_lock);
}

static void act(struct worker *worker)
{
    static void (*const acts[])(struct worker *) = {
        exchange, exchange,  act_question, act_question, act_stream,     act_host_function,
        act_pool, act_limit, act_hint,     act_hint,     act_host_memory};
    uint32_t number = draw(worker, 100);

    if (worker->alone) {
        act_rest(worker);
    }
    if (number < 70) {
        use_block(worker);
    } else if (number < 85) {
        acts[draw(worker, sizeof(acts) / sizeof(acts[0]))](worker);
    } else if (number < 87 && options.contexts) {
        act_context(worker);
    } else if (number < 88 && options.forks) {
        act_fork(worker);
    } else if (number < 91 && options.captures) {
        act_capture(worker);
    } else if (number < 99) {
        act_launch(worker);
    } else {
        act_end_loop(worker);
    }
}

static void step(struct worker *worker)
{
    worker->alone = once_in(worker, 50);
    if (worker->alone) {
        pthread_rwlock_wrlock(&program.world);
    } else {
        pthread_rwlock_rdlock(&program.world);
    }
    act(worker);
    pthread_rwlock_unlock(&program.world);
    atomic_fetch_add(&program.acts, 1);
}

static bool begin_work(struct worker *worker)
{
    worker->random = options.seed * 2654435761u + (uint32_t)worker->number * 40503u + 1;
    worker->random += worker->random == 0;
    for (int i = 0; i < 8; i++) {
        (void)draw(worker, 2);
    }
    worker->device = worker->number % options.devices;
    worker->context = program.contexts[worker->device];
    worker->add = program.adds[worker->device];
    worker->buffer = calloc(BUFFER_WORDS, sizeof(uint32_t));
    worker->expected = calloc(BUFFER_WORDS, sizeof(uint32_t));
    worker->streams[OWN_STREAMS + 1] = CU_STREAM_PER_THREAD;
    worker->streams[OWN_STREAMS + 2] = CU_STREAM_LEGACY;
    if (worker->buffer == NULL || worker->expected == NULL ||
        !ok(cuCtxSetCurrent(worker->context), "cuCtxSetCurrent")) {
        return false;
    }
    for (int i = 0; i < OWN_STREAMS; i++) {
        act_stream(worker);
    }
    return true;
}

static void end_work(struct worker *worker)
{
    if (worker->stopped) {
        atomic_fetch_add(&program.losses, BLOCKS);
        return;
    }
    act_end_loop(worker);
    for (int i = 0; i < BLOCKS; i++) {
        if (worker->blocks[i].address != 0) {
            block_check(worker, &worker->blocks[i]);
            block_free(worker, &worker->blocks[i]);
        }
    }
    if (worker->pool != NULL) {
        (void)ok(cuMemPoolDestroy(worker->pool), "cuMemPoolDestroy");
    }
    for (int i = 0; i < OWN_STREAMS; i++) {
        if (worker->streams[i] != NULL) {
            (void)ok(cuStreamDestroy(worker->streams[i]), "cuStreamDestroy");
        }
    }
    if (worker->registered) {
        (void)ok(cuMemHostUnregister(worker->buffer), "cuMemHostUnregister");
    }
}

/* Frees the buffers, unless work that was not waited for may use them. */
static void forget(struct worker *worker)
{
    if (!worker->stopped) {
        free(worker->buffer);
        free(worker->expected);
    }
}

static void *work(void *number)
{
    struct worker worker = {.number = (int)(intptr_t)number};
    bool begun;

    pthread_rwlock_rdlock(&program.world);
    begun = begin_work(&worker);
    pthread_rwlock_unlock(&program.world);
    if (begun) {
        for (int i = 0; i < options.steps && !worker.stopped; i++) {
            step(&worker);
        }
        /* As in a step: another thread may be alone, in a capture that forbids others to free. */
        pthread_rwlock_rdlock(&program.world);
        end_work(&worker);
        pthread_rwlock_unlock(&program.world);
    }
    forget(&worker);
    atomic_fetch_add(&ended, 1);
    return NULL;
}

/* ---- signals ---- */

static void on_signal(int number)
{
    (void)number;
}

static void pause_at_most(uint32_t *random, uint32_t nanoseconds)
{
    struct timespec pause;

    *random = *random * 1664525u + 1013904223u;
    pause = (struct timespec){.tv_nsec = (*random >> 8) % nanoseconds};
    nanosleep(&pause, NULL);
}

/* Sends a harmless signal to the threads again and again. */
static void *disturb(void *count)
{
    uint32_t random = options.seed;

    while (!atomic_load(&signals_over)) {
        pause_at_most(&random, 3000000);
        for (int i = 0; i < (int)(intptr_t)count; i++) {
            if (((random >> 20) + (uint32_t)i) % 2 == 0) {
                (void)pthread_kill(threads[i], SIGUSR1);
            }
        }
    }
    return NULL;
}

/* Ends the process at some time. */
static void *strike(void *unused)
{
    uint32_t random = options.seed * 7919u;

    for (int i = 0; i < (int)(options.seed % 5); i++) {
        pause_at_most(&random, 100000000);
    }
    pause_at_most(&random, 20000000);
    (void)kill(getpid(), strcmp(options.leave, "kill") == 0 ? SIGKILL : SIGTERM);
    return unused;
}

/* ---- the whole ---- */

static bool read_option(const char *word)
{
    static const struct {
        const char *name;
        int *value;
    } numbers[] = {{"threads=", &options.threads},
                   {"steps=", &options.steps},
                   {"devices=", &options.devices},
                   {"size=", &options.size_log2},
                   {"spread=", &options.spread}};
    static const struct {
        const char *name;
        bool *value;
    } switches[] = {{"forks", &options.forks},       {"contexts", &options.contexts},
                    {"captures", &options.captures}, {"functions", &options.functions},
                    {"holds", &options.holds},       {"signals", &options.signals},
                    {"faults", &options.faults},     {"storm", &options.storm}};

    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        if (strncmp(word, numbers[i].name, strlen(numbers[i].name)) == 0) {
            *numbers[i].value = atoi(word + strlen(numbers[i].name));
            return *numbers[i].value > 0;
        }
    }
    for (size_t i = 0; i < sizeof(switches) / sizeof(switches[0]); i++) {
        if (strcmp(word, switches[i].name) == 0) {
            return *switches[i].value = true;
        }
    }
    if (strncmp(word, "allow=", 6) == 0) {
        errors_allow(atoi(word + 6));
        return true;
    }
    if (strncmp(word, "leave=", 6) == 0) {
        options.leave = word + 6;
        return true;
    }
    if (strncmp(word, "late:", 5) == 0 && late_count < WORDS) {
        late_words[late_count++] = word + 5;
        return options.confined = true;
    }
    options.confined = true;
    return confine(word);
}

/* Initialises CUDA, and uses each device once. False: it cannot be used. */
static bool start(void)
{
    CUdeviceptr block = 0;
    void *host = NULL;
    CUmodule module;

    if (!ok(cuInit(0), "cuInit")) {
        return false;
    }
    for (int i = 0; i < options.devices; i++) {
        if (!ok(cuDevicePrimaryCtxRetain(&program.contexts[i], i), "cuDevicePrimaryCtxRetain") ||
            !ok(cuCtxSetCurrent(program.contexts[i]), "cuCtxSetCurrent")) {
            return false;
        }
        if (!ok(cuModuleLoadData(&module, "image"), "cuModuleLoadData") ||
            !ok(cuModuleGetFunction(&program.adds[i], module, "spw_add"), "cuModuleGetFunction")) {
            program.adds[i] = NULL;
        }
        if (late_count > 0 && ok(cuMemAlloc(&block, 1), "cuMemAlloc")) {
            (void)ok(cuMemFree(block), "cuMemFree");
        }
        if (late_count > 0 && ok(cuMemHostAlloc(&host, 1, 0), "cuMemHostAlloc")) {
            (void)ok(cuMemFreeHost(host), "cuMemFreeHost");
        }
    }
    for (int i = 0; i < late_count; i++) {
        if (!confine(late_words[i])) {
            printf("no confinement: %s\n", late_words[i]);
            return false;
        }
    }
    return true;
}

/* Frees what threads left on the shelf. */
static void clear_shelf(void)
{
    struct worker worker = {.number = options.threads};

    if (begin_work(&worker)) {
        for (int i = 0; i < SHELF && !worker.stopped; i++) {
            if (program.shelf[i].address != 0) {
                block_check(&worker, &program.shelf[i]);
                block_free(&worker, &program.shelf[i]);
            }
        }
        end_work(&worker);
    } else {
        atomic_fetch_add(&program.losses, SHELF);
    }
    forget(&worker);
}

static void finish(void)
{
    clear_shelf();
    for (int i = 0; i < options.devices; i++) {
        (void)ok(cuCtxSetCurrent(program.contexts[i]), "cuCtxSetCurrent");
        (void)ok(cuCtxSynchronize(), "cuCtxSynchronize");
        trim(i);
    }
    if (!options.faults && !options.confined) {
        check_books();
    }
    for (int i = 0; i < options.devices && strcmp(options.leave, "reset") == 0; i++) {
        if (ok(cuCtxSetCurrent(program.contexts[i]), "cuCtxSetCurrent")) {
            (void)ok(i % 2 == 0 ? cuDevicePrimaryCtxReset(i) : cuDevicePrimaryCtxRelease(i),
                     "cuDevicePrimaryCtxReset");
        }
    }
}

static int tell(void)
{
    printf("%u acts, %u allowed errors, %u lost blocks, %u findings\n", atomic_load(&program.acts),
           errors_allowed(), atomic_load(&program.losses), errors_findings());
    fflush(stdout);
    return errors_findings() > 0 ? FINDINGS : 0;
}

/* Leaves while the threads work on. */
static void leave_early(void)
{
    uint32_t random = options.seed;
    int status;

    for (int i = 0; i < (int)(options.seed % 8); i++) {
        pause_at_most(&random, 20000000);
    }
    status = tell();
    atomic_store(&program.leaving, true);
    if (strcmp(options.leave, "quick") == 0) {
        _exit(status);
    }
    exit(status);
}

static int run(void)
{
    pthread_t others[2];
    int started = 0, helpers = 0;

    while (started < options.threads && started < THREADS &&
           pthread_create(&threads[started], NULL, work, (void *)(intptr_t)started) == 0) {
        started++;
    }
    if (options.signals) {
        helpers += pthread_create(&others[helpers], NULL, disturb, (void *)(intptr_t)started) == 0;
    }
    if (strcmp(options.leave, "kill") == 0 || strcmp(options.leave, "term") == 0) {
        helpers += pthread_create(&others[helpers], NULL, strike, NULL) == 0;
    }
    if (strcmp(options.leave, "exit") == 0 || strcmp(options.leave, "quick") == 0) {
        leave_early();
    }
    if (options.signals && helpers > 0) {
        /* No signal goes to a thread that is gone. */
        while (atomic_load(&ended) < started) {
            usleep(1000);
        }
        atomic_store(&signals_over, true);
        pthread_join(others[0], NULL);
    }
    for (int i = 0; i < started; i++) {
        pthread_join(threads[i], NULL);
    }
    if (options.storm) {
        storm();
    }
    finish();
    return tell();
}

int main(int argc, char **argv)
{
    struct sigaction action = {.sa_handler = on_signal};

    if (argc == 2 && strcmp(argv[1], "child") == 0) {
        return 0;
    }
    options.seed = argc > 1 ? (unsigned int)strtoul(argv[1], NULL, 10) : 1;
    options.self = argv[0];
    action.sa_flags = options.seed % 2 == 0 ? SA_RESTART : 0;
    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    (void)sigaction(SIGUSR1, &action, NULL);
    for (int i = 2; i < argc; i++) {
        if (!read_option(argv[i])) {
            fprintf(stderr, "chaos: %s: not an option, or it cannot be had\n", argv[i]);
            return USAGE;
        }
    }
    options.devices = options.devices < DEVICES ? options.devices : DEVICES;
    return start() ? run() : tell();
}
