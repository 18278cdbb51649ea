/* Acts without a block of their own: questions, contexts, pools, streams, host functions. */
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <spillway.h>

#include "chaos.h"
#include "errors.h"

enum { VISIT_BLOCKS = 4, VISIT_ACTS = 12, HELD_BLOCKS = 4, MUTEXES = 4 };

static struct block *any_block(struct worker *worker)
{
    struct block *block = &worker->blocks[draw(worker, BLOCKS)];

    return block->address != 0 && !block->lost ? block : NULL;
}

/* ---- questions ---- */

static void ask_attributes(const struct block *block, CUdeviceptr inside, bool here)
{
    unsigned int type = 0, managed = 9;
    int ordinal = -1;
    CUdeviceptr pointer = 0;
    CUpointer_attribute names[] = {CU_POINTER_ATTRIBUTE_DEVICE_POINTER,
                                   CU_POINTER_ATTRIBUTE_IS_MANAGED};
    void *values[] = {&pointer, &managed};

    if (ok(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, inside),
           "cuPointerGetAttribute") &&
        block->kind != MANAGED && type != CU_MEMORYTYPE_DEVICE) {
        finding("memory type %u of block %u (kind %d)", type, block->id, (int)block->kind);
    }
    if (ok(cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, inside),
           "cuPointerGetAttribute") &&
        block->kind != MANAGED && ordinal != block->device) {
        finding("device %d of block %u of device %d", ordinal, block->id, block->device);
    }
    if (ok(cuPointerGetAttributes(2, names, values, inside), "cuPointerGetAttributes")) {
        if ((here && pointer != inside) || (managed != 0) != (block->kind == MANAGED)) {
            finding("block %u (kind %d): pointer %#llx for %#llx, managed %u", block->id,
                    (int)block->kind, (unsigned long long)pointer, (unsigned long long)inside,
                    managed);
        }
    }
}

void act_question(struct worker *worker)
{
    struct block *block = any_block(worker);
    CUdeviceptr inside, base = 0;
    size_t bytes = 0, free_bytes = 0, total = 0;

    if (block == NULL) {
        return;
    }
    bytes = block->content.words * sizeof(uint32_t);
    inside = block->address + draw(worker, (uint32_t)bytes);
    ask_attributes(block, inside, block->device == worker->device);
    if (ok(cuMemGetAddressRange(&base, &bytes, inside), "cuMemGetAddressRange") &&
        (base != block->address ||
         base + bytes < block->address + block->content.words * sizeof(uint32_t))) {
        finding("block %u (kind %d) at %#llx is at %#llx, %zu bytes", block->id, (int)block->kind,
                (unsigned long long)block->address, (unsigned long long)base, bytes);
    }
    if (ok(cuMemGetInfo(&free_bytes, &total), "cuMemGetInfo") && free_bytes > total) {
        finding("%zu bytes of %zu are free", free_bytes, total);
    }
}

/* ---- pools ---- */

static void change_pool(struct worker *worker)
{
    CUmemPoolProps wanted = {
        .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = worker->device}};

    if (worker->pool == NULL) {
        if (!ok(cuMemPoolCreate(&worker->pool, &wanted), "cuMemPoolCreate")) {
            worker->pool = NULL;
        }
        return;
    }
    (void)ok(cuMemPoolDestroy(worker->pool), "cuMemPoolDestroy");
    worker->pool = NULL;
}

void act_pool(struct worker *worker)
{
    CUmemoryPool pool = NULL;
    cuuint64_t used = 0, reserved = 0, threshold = once_in(worker, 2) ? UINT64_MAX : 0;

    if (once_in(worker, 3)) {
        change_pool(worker);
        return;
    }
    if (!ok(cuDeviceGetDefaultMemPool(&pool, worker->device), "cuDeviceGetDefaultMemPool")) {
        return;
    }
    switch (draw(worker, 4)) {
    case 0:
        (void)ok(cuMemPoolTrimTo(pool, draw(worker, 2) << 22), "cuMemPoolTrimTo");
        break;
    case 1:
        (void)ok(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold),
                 "cuMemPoolSetAttribute");
        break;
    case 2:
        if (worker->pool != NULL) {
            (void)ok(cuDeviceSetMemPool(worker->device, worker->pool), "cuDeviceSetMemPool");
            (void)ok(cuDeviceSetMemPool(worker->device, pool), "cuDeviceSetMemPool");
        }
        break;
    default:
        /* `used` first: other threads may allocate in between, and what is used is reserved. */
        if (ok(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used),
               "cuMemPoolGetAttribute") &&
            ok(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &reserved),
               "cuMemPoolGetAttribute") &&
            worker->alone && reserved < used) {
            finding("%llu bytes are used of %llu", (unsigned long long)used,
                    (unsigned long long)reserved);
        }
    }
}

/* ---- contexts ---- */

static void visit(struct worker *visitor)
{
    for (int i = 0; i < VISIT_ACTS && !visitor->stopped; i++) {
        struct block *block = &visitor->blocks[draw(visitor, VISIT_BLOCKS)];

        if (block->address == 0) {
            (void)block_allocate(visitor, block);
        } else if (once_in(visitor, 4)) {
            block_free(visitor, block);
        } else if (once_in(visitor, 2)) {
            block_write(visitor, block);
        } else {
            block_check(visitor, block);
        }
    }
    for (int i = 0; i < VISIT_BLOCKS; i++) {
        struct block *block = &visitor->blocks[i];

        /* The context takes plain blocks with it. */
        if (block->address != 0 && (block->kind != PLAIN || once_in(visitor, 2))) {
            block_free(visitor, block);
        }
    }
}

void act_context(struct worker *worker)
{
    struct worker visitor = *worker;

    visitor.device = (int)draw(worker, (uint32_t)options.devices);
    visitor.pool = NULL;
    visitor.loop = (struct loop){0};
    memset(visitor.blocks, 0, sizeof(visitor.blocks));
    if (!ok(cuCtxCreate(&visitor.context, NULL, 0, visitor.device), "cuCtxCreate")) {
        return;
    }
    for (int i = 0; i < STREAMS; i++) {
        visitor.streams[i] = i % 2 == 0 ? NULL : CU_STREAM_PER_THREAD;
    }
    if (!ok(cuStreamCreate(&visitor.streams[0], CU_STREAM_NON_BLOCKING), "cuStreamCreate")) {
        visitor.streams[0] = NULL;
    }
    visitor.add = NULL;
    if (once_in(worker, 2) && ok(cuModuleLoadData(&visitor.module, "image"), "cuModuleLoadData") &&
        !ok(cuModuleGetFunction(&visitor.add, visitor.module, "spw_add"), "cuModuleGetFunction")) {
        visitor.add = NULL;
    }
    visit(&visitor);
    if (!ok(cuCtxDestroy(visitor.context), "cuCtxDestroy")) {
        atomic_fetch_add(&program.losses, 1);
    }
    worker->random = visitor.random;
    worker->stopped = visitor.stopped;
    go_to(worker, worker->context);
}

/* ---- streams, host functions, host memory ---- */

void act_stream(struct worker *worker)
{
    CUstream *stream = &worker->streams[draw(worker, OWN_STREAMS)];

    if (*stream != NULL) {
        (void)ok(cuStreamDestroy(*stream), "cuStreamDestroy");
    }
    if (!ok(once_in(worker, 3) ? cuStreamCreate(stream, CU_STREAM_DEFAULT)
                               : cuStreamCreate(stream, CU_STREAM_NON_BLOCKING),
            "cuStreamCreate")) {
        *stream = NULL;
    }
}

static pthread_mutex_t mutexes[MUTEXES] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER,
                                           PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER};

static void CUDA_CB await_mutex(void *mutex)
{
    pthread_mutex_lock(mutex);
    pthread_mutex_unlock(mutex);
}

static void allocate_some(CUdeviceptr blocks[HELD_BLOCKS], size_t bytes, CUstream stream)
{
    for (int i = 0; i < HELD_BLOCKS; i++) {
        if (!ok(cuMemAllocAsync(&blocks[i], bytes, stream), "cuMemAllocAsync")) {
            blocks[i] = 0;
        }
    }
}

static void free_some(const CUdeviceptr blocks[HELD_BLOCKS], CUstream stream)
{
    for (int i = 0; i < HELD_BLOCKS; i++) {
        if (blocks[i] != 0 && !ok(cuMemFreeAsync(blocks[i], stream), "cuMemFreeAsync")) {
            atomic_fetch_add(&program.losses, 1);
        }
    }
}

/* Holds a mutex that a stream waits for, and frees memory meanwhile. Only where an allocation never
 * waits for the device, it may allocate as well. */
void act_host_function(struct worker *worker)
{
    pthread_mutex_t *mutex = &mutexes[worker->number % MUTEXES];
    CUstream stream = worker->streams[draw(worker, OWN_STREAMS)];
    const struct timespec pause = {.tv_nsec = draw(worker, 2000000)};
    CUdeviceptr before[HELD_BLOCKS], held[HELD_BLOCKS] = {0};
    size_t bytes = (size_t)1 << (8 + draw(worker, 14));

    if (!options.functions) {
        return;
    }
    allocate_some(before, bytes, stream);
    pthread_mutex_lock(mutex);
    (void)ok(cuLaunchHostFunc(stream, await_mutex, mutex), "cuLaunchHostFunc");
    if (options.holds) {
        allocate_some(held, bytes, stream);
    }
    nanosleep(&pause, NULL);
    free_some(before, stream);
    free_some(held, stream);
    pthread_mutex_unlock(mutex);
}

void act_host_memory(struct worker *worker)
{
    size_t bytes = (size_t)64 << draw(worker, 12);
    void *memory = NULL;

    if (once_in(worker, 2)) {
        if (ok(cuMemHostAlloc(&memory, bytes, CU_MEMHOSTALLOC_PORTABLE), "cuMemHostAlloc")) {
            memset(memory, 1, bytes);
            (void)ok(cuMemFreeHost(memory), "cuMemFreeHost");
        }
        return;
    }
    if (worker->registered) {
        worker->registered = !ok(cuMemHostUnregister(worker->buffer), "cuMemHostUnregister");
    } else {
        worker->registered = ok(cuMemHostRegister(worker->buffer, BUFFER_WORDS * sizeof(uint32_t),
                                                  CU_MEMHOSTREGISTER_PORTABLE),
                                "cuMemHostRegister");
    }
}

void act_limit(struct worker *worker)
{
    size_t value = 0;

    (void)ok(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, (size_t)1024 << draw(worker, 3)), "cuCtxSetLimit");
    (void)ok(cuCtxGetLimit(&value, CU_LIMIT_STACK_SIZE), "cuCtxGetLimit");
}

/* Waits for the device and gives memory back, while no other thread acts. */
void act_rest(struct worker *worker)
{
    CUmemoryPool pool = NULL;

    if (ok(cuCtxSynchronize(), "cuCtxSynchronize") &&
        ok(cuDeviceGetDefaultMemPool(&pool, worker->device), "cuDeviceGetDefaultMemPool")) {
        (void)ok(cuMemPoolTrimTo(pool, 0), "cuMemPoolTrimTo");
    }
    act_question(worker);
    act_pool(worker);
}

/* The functions of spillway.h, if they are there. */
void act_hint(struct worker *worker)
{
    int (*pin)(const void *, size_t, int), (*priority)(const void *, size_t, int);
    int (*mark)(void), (*stats)(int, struct spillway_stats *);
    struct spillway_stats figures = {.size = sizeof(figures)};
    struct block *block = any_block(worker);

    *(void **)&pin = dlsym(RTLD_DEFAULT, "spillway_pin");
    *(void **)&priority = dlsym(RTLD_DEFAULT, "spillway_priority");
    *(void **)&mark = dlsym(RTLD_DEFAULT, "spillway_mark_step");
    *(void **)&stats = dlsym(RTLD_DEFAULT, "spillway_stats");
    if (pin == NULL || priority == NULL || mark == NULL || stats == NULL || block == NULL) {
        return;
    }
    switch (draw(worker, 4)) {
    case 0: /* The answers are errors for memory that is not in the pool. */
        (void)pin((void *)block->address, 1, (int)draw(worker, 2));
        break;
    case 1:
        (void)priority((void *)block->address, 1, (int)draw(worker, 200) - 100);
        break;
    case 2:
        (void)ok((CUresult)mark(), "spillway_mark_step");
        break;
    default:
        (void)ok((CUresult)stats(worker->device, &figures), "spillway_stats");
    }
}

/* ---- fork ---- */

/* The child of a program that uses CUDA: it must not use CUDA itself. */
static void be_child(int way, CUdeviceptr block)
{
    CUdeviceptr address = 0;

    switch (way) {
    case 0:
        _exit(0);
    case 1:
        exit(0);
    case 2:
        _exit(cuMemAlloc(&address, 1 << 20) == CUDA_SUCCESS ? 1 : 0);
    case 3:
        (void)cuMemFree(block);
        _exit(0);
    default:
        (void)execl(options.self, options.self, "child", (char *)NULL);
        _exit(0);
    }
}

void act_fork(struct worker *worker)
{
    struct block *block = any_block(worker);
    int way = (int)draw(worker, 5), status = 0;
    bool leaves = strcmp(options.leave, "exit") == 0;
    pid_t child, ended;

    fflush(stdout);
    /* While another thread is in exit(), a child has locks of the C library that nobody frees. */
    way = leaves ? 0 : way;
    child = fork();
    if (child == 0) {
        be_child(way, block != NULL ? block->address : 0);
    }
    if (child < 0) {
        return;
    }
    do {
        ended = waitpid(child, &status, 0);
    } while (ended < 0 && errno == EINTR);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        finding("a child that went way %d ended with status %#x", way, (unsigned int)status);
    }
}
