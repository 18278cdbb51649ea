/* Stand-in for libc10_cuda.so of PyTorch 2.11: an object of PyTorch's native allocator whose table
 * is as src/torch/versions.def says, with a simple cache behind it that takes every block from
 * cudaMalloc. Refused, it frees what it has cached and asks once more, unless a private pool is
 * open. Where PyTorch throws, an allocation returns NULL.
 *
 * FAKE_TORCH makes the object another than that of the version; see `make_table`. */
#include "../../fake.h"
#include "torch/returned.h"
#include "torch/row.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FUNCTIONS = 50, POOLS = 16, SMALL_MOST_BYTES = 1 << 20, DEVICES = 8 };

struct block {
    struct block *next;
    void *address;
    size_t bytes, asked;
    cudaStream_t stream;
    int device;
    struct spw_torch_pool_id pool;
    bool used;   /* given out */
    bool shared; /* other streams used it */
};

/* DeviceStats of the row. */
struct figures {
    struct spw_torch_figures first;
    struct spw_torch_stat active_bytes[SPW_TORCH_KINDS], inactive_split_bytes[SPW_TORCH_KINDS];
    struct spw_torch_stat requested_bytes[SPW_TORCH_KINDS];
    int64_t retries, refusals;
    struct spw_torch_stat oversize[2];
    int64_t syncs, device_allocs, device_frees;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct block *blocks;
static struct figures figures[DEVICES];
static double fractions[DEVICES] = {1, 1, 1, 1, 1, 1, 1, 1};
static struct {
    int device;
    struct spw_torch_pool_id id;
} open_pools[POOLS];
static int open_count, asked_count;
static bool uncached;
static double answered_fraction; /* instead of the true one, if not 0 */
static const char *answered_name = "native";
static _Thread_local cudaStream_t current;

/* ---- figures ---- */

static void shift(struct spw_torch_stat *stats, size_t bytes, int64_t by)
{
    int kinds[] = {SPW_TORCH_ALL, bytes <= SMALL_MOST_BYTES ? SPW_TORCH_SMALL : SPW_TORCH_LARGE};

    for (int i = 0; i < 2; i++) {
        struct spw_torch_stat *stat = &stats[kinds[i]];

        stat->current += by;
        stat->peak = stat->current > stat->peak ? stat->current : stat->peak;
        stat->allocated += by > 0 ? by : 0;
        stat->freed += by < 0 ? -by : 0;
    }
}

static void count_block(const struct block *block, int sign)
{
    struct figures *f = &figures[block->device];
    int64_t bytes = sign * (int64_t)block->bytes;

    shift(f->first.allocation, block->bytes, sign);
    shift(f->first.active, block->bytes, sign);
    shift(f->first.allocated_bytes, block->bytes, bytes);
    shift(f->active_bytes, block->bytes, bytes);
    shift(f->requested_bytes, block->bytes, sign * (int64_t)block->asked);
}

static void count_segment(const struct block *block, int sign)
{
    struct figures *f = &figures[block->device];

    shift(f->first.segment, block->bytes, sign);
    shift(f->first.reserved_bytes, block->bytes, sign * (int64_t)block->bytes);
    *(sign > 0 ? &f->device_allocs : &f->device_frees) += 1;
}

/* ---- memory ---- */

static bool same_pool(struct spw_torch_pool_id a, struct spw_torch_pool_id b)
{
    return a.first == b.first && a.second == b.second;
}

static struct block *find(const void *address)
{
    for (struct block *block = blocks; block != NULL; block = block->next) {
        if (block->address == address && block->used) {
            return block;
        }
    }
    return NULL;
}

/* Frees what is cached: all, or one pool's. */
static void drop_cached(const struct spw_torch_pool_id *only)
{
    struct block **place = &blocks;

    while (*place != NULL) {
        struct block *block = *place;

        if (block->used || (only != NULL && !same_pool(block->pool, *only))) {
            place = &block->next;
            continue;
        }
        *place = block->next;
        (void)cudaFree(block->address);
        count_segment(block, -1);
        free(block);
    }
}

static struct spw_torch_pool_id pool_of(int device)
{
    for (int i = open_count; i-- > 0;) {
        if (open_pools[i].device == device) {
            return open_pools[i].id;
        }
    }
    return (struct spw_torch_pool_id){0, 0};
}

static struct block *find_cached(const struct block *wanted)
{
    for (struct block *block = blocks; block != NULL; block = block->next) {
        if (!block->used && !block->shared && block->bytes == wanted->bytes &&
            block->stream == wanted->stream && block->device == wanted->device &&
            same_pool(block->pool, wanted->pool)) {
            return block;
        }
    }
    return NULL;
}

/* Captures must not notice the call. */
static __attribute__((noinline)) bool alloc_block(struct block *block)
{
    enum cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    struct figures *f = &figures[block->device];
    size_t left, total;
    cudaError_t err;

    if (fractions[block->device] < 1) {
        (void)cudaMemGetInfo(&left, &total);
        if ((double)((size_t)f->first.reserved_bytes[0].current + block->bytes) >
            fractions[block->device] * (double)total) {
            return false;
        }
    }
    (void)cudaThreadExchangeStreamCaptureMode(&mode);
    err = cudaMalloc(&block->address, block->bytes);
    (void)cudaThreadExchangeStreamCaptureMode(&mode);
    if (err != cudaSuccess) {
        (void)cudaGetLastError();
        f->retries++;
    }
    return err == cudaSuccess;
}

static __attribute__((noinline)) bool new_segment(struct block *block)
{
    volatile char frame[512]; /* of a function that has more to do */
    size_t left, total;

    frame[0] = frame[sizeof(frame) - 1] = 0;
    if (alloc_block(block)) {
        return true;
    }
    if (open_count == 0) {
        drop_cached(NULL);
        if (alloc_block(block)) {
            return true;
        }
    }
    (void)cudaMemGetInfo(&left, &total);
    figures[block->device].refusals++;
    return false;
}

static struct block *take(struct block wanted)
{
    struct block *block = find_cached(&wanted);

    if (block == NULL) {
        if (!new_segment(&wanted) || (block = malloc(sizeof(*block))) == NULL) {
            return NULL;
        }
        wanted.next = blocks;
        *block = wanted;
        blocks = block;
        asked_count++;
        count_segment(block, 1);
    }
    block->used = true;
    block->asked = wanted.asked;
    count_block(block, 1);
    return block;
}

static void *allocate_on(size_t bytes, cudaStream_t stream)
{
    struct block wanted = {.bytes = (bytes + 511) & ~(size_t)511, .asked = bytes, .stream = stream};
    struct block *block;

    if (bytes == 0 || cudaGetDevice(&wanted.device) != cudaSuccess) {
        return NULL;
    }
    (void)pthread_mutex_lock(&lock);
    wanted.pool = pool_of(wanted.device);
    block = take(wanted);
    (void)pthread_mutex_unlock(&lock);
    return block != NULL ? block->address : NULL;
}

static void delete_native(void *memory)
{
    static const struct spw_torch_pool_id no_pool;
    struct block *block;

    if (memory == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&lock);
    block = find(memory);
    if (block == NULL) {
        fprintf(stderr, "invalid device pointer: %p\n", memory);
        _Exit(3);
    }
    block->used = false;
    count_block(block, -1);
    if (open_count == 0 && (uncached || block->shared)) {
        drop_cached(&no_pool);
    }
    (void)pthread_mutex_unlock(&lock);
}

/* ---- the functions of the table ---- */

static struct spw_torch_data_ptr *allocate(struct spw_torch_data_ptr *ret, struct fake_object *self,
                                           size_t bytes)
{
    void *memory = allocate_on(bytes, current);
    int device = 0;

    (void)self;
    (void)cudaGetDevice(&device);
    *ret =
        (struct spw_torch_data_ptr){memory, delete_native, memory, SPW_TORCH_CUDA, (int8_t)device};
    return ret;
}
SPW_TORCH_RETURNS(allocate)

static spw_torch_deleter *raw_deleter(struct fake_object *self)
{
    (void)self;
    return delete_native;
}

static void *raw_alloc(struct fake_object *self, size_t bytes)
{
    (void)self;
    return allocate_on(bytes, current);
}

static void *raw_alloc_with_stream(struct fake_object *self, size_t bytes, cudaStream_t stream)
{
    (void)self;
    return allocate_on(bytes, stream);
}

static void raw_delete(struct fake_object *self, void *memory)
{
    (void)self;
    delete_native(memory);
}

static bool initialized(struct fake_object *self)
{
    (void)self;
    return true;
}

static void enable(struct fake_object *self, bool on)
{
    (void)self;
    uncached = !on;
}

static double get_memory_fraction(struct fake_object *self, int8_t device)
{
    (void)self;
    return answered_fraction != 0 ? answered_fraction : fractions[device];
}

static void set_memory_fraction(struct fake_object *self, double fraction, int8_t device)
{
    (void)self;
    fractions[device] = fraction;
}

static void empty_cache(struct fake_object *self, struct spw_torch_pool_id id)
{
    (void)self;
    (void)pthread_mutex_lock(&lock);
    drop_cached(id.first == 0 && id.second == 0 ? NULL : &id);
    (void)pthread_mutex_unlock(&lock);
}

static void *get_base_allocation(struct fake_object *self, void *memory, size_t *ret_bytes)
{
    const struct block *block;

    (void)self;
    (void)pthread_mutex_lock(&lock);
    block = find(memory);
    if (block != NULL && ret_bytes != NULL) {
        *ret_bytes = block->bytes;
    }
    (void)pthread_mutex_unlock(&lock);
    return block != NULL ? memory : NULL;
}

static void record_stream(struct fake_object *self, const struct spw_torch_data_ptr *memory,
                          struct spw_torch_stream stream)
{
    struct block *block;

    (void)self;
    if (memory->deleter != delete_native) {
        return;
    }
    (void)pthread_mutex_lock(&lock);
    block = find(memory->data);
    if (block == NULL) {
        fprintf(stderr, "recordStream: not a block: %p\n", memory->data);
        _Exit(3);
    }
    block->shared = block->shared || (cudaStream_t)(uintptr_t)stream.id != block->stream;
    (void)pthread_mutex_unlock(&lock);
}

static void *get_device_stats(void *ret, struct fake_object *self, int8_t device)
{
    (void)self;
    (void)pthread_mutex_lock(&lock);
    memcpy(ret, &figures[device], sizeof(figures[device]));
    (void)pthread_mutex_unlock(&lock);
    return ret;
}
SPW_TORCH_RETURNS(get_device_stats)

/* Every figure is a Stat up to the counters behind them. */
static void reset(int device, bool peaks)
{
    struct spw_torch_stat *stats = (struct spw_torch_stat *)&figures[device];

    (void)pthread_mutex_lock(&lock);
    for (size_t i = 0; i < offsetof(struct figures, retries) / sizeof(*stats); i++) {
        if (peaks) {
            stats[i].peak = stats[i].current;
        } else {
            stats[i].allocated = stats[i].freed = 0;
        }
    }
    (void)pthread_mutex_unlock(&lock);
}

static void reset_accumulated_stats(struct fake_object *self, int8_t device)
{
    (void)self;
    reset(device, /* peaks */ false);
}

static void reset_peak_stats(struct fake_object *self, int8_t device)
{
    (void)self;
    reset(device, /* peaks */ true);
}

static void *snapshot(struct spw_torch_snapshot *ret, struct fake_object *self,
                      struct spw_torch_pool_id id, bool traces)
{
    struct spw_torch_segment_info *at;
    size_t count = 0;

    (void)self, (void)traces;
    (void)pthread_mutex_lock(&lock);
    for (struct block *block = blocks; block != NULL; block = block->next) {
        count++;
    }
    at = fake_new((count + 1) * sizeof(*at));
    ret->segments.begin = at;
    for (struct block *block = blocks; block != NULL; block = block->next) {
        if ((id.first != 0 || id.second != 0) && !same_pool(id, block->pool)) {
            continue;
        }
        *at++ = (struct spw_torch_segment_info){.address = (uintptr_t)block->address,
                                                .total_bytes = block->bytes,
                                                .requested_bytes = block->used ? block->asked : 0,
                                                .owner = block->pool};
    }
    (void)pthread_mutex_unlock(&lock);
    ret->segments.end = ret->segments.capacity = at;
    return ret;
}
SPW_TORCH_RETURNS(snapshot)

static void begin_allocate_to_pool(struct fake_object *self, int8_t device,
                                   struct spw_torch_pool_id id, void *filter)
{
    (void)self, (void)filter;
    (void)pthread_mutex_lock(&lock);
    open_pools[open_count].device = device;
    open_pools[open_count++].id = id;
    (void)pthread_mutex_unlock(&lock);
}

static void end_allocate_to_pool(struct fake_object *self, int8_t device,
                                 struct spw_torch_pool_id id)
{
    int at = 0;

    (void)self;
    (void)pthread_mutex_lock(&lock);
    while (open_pools[at].device != device || !same_pool(open_pools[at].id, id)) {
        at++;
    }
    open_pools[at] = open_pools[--open_count];
    (void)pthread_mutex_unlock(&lock);
}

static void *share_ipc_handle(struct spw_torch_shareable *ret, struct fake_object *self,
                              void *memory)
{
    enum { LENGTH = 2 + sizeof(cudaIpcMemHandle_t) };

    (void)self;
    *ret = (struct spw_torch_shareable){0, fake_new(LENGTH + 1), LENGTH, {LENGTH}};
    memset(ret->text, 0, LENGTH + 1);
    ret->text[0] = 1;
    ret->text[1] = 'c';
    (void)cudaIpcGetMemHandle((cudaIpcMemHandle_t *)(ret->text + 2), memory);
    return ret;
}
SPW_TORCH_RETURNS(share_ipc_handle)

static void record_history(struct fake_object *self, bool on, void *recorder, size_t most,
                           uint64_t when, uint64_t clear, const void *skipped)
{
    (void)self, (void)on, (void)recorder, (void)most, (void)when, (void)clear, (void)skipped;
}

static void attach_trace_tracker(struct fake_object *self, void *tracker)
{
    (void)self, (void)tracker;
}

static void *set_checkpoint_pool_state(struct spw_torch_checkpoint *ret, struct fake_object *self,
                                       int8_t device, void *state)
{
    const struct fake_checkpoint *checkpoint = state;
    struct spw_torch_data_ptr *made = fake_new((size_t)checkpoint->count * sizeof(*made));

    begin_allocate_to_pool(self, device, checkpoint->pool, NULL);
    for (int i = 0; i < checkpoint->count; i++) {
        (void)allocate(&made[i], self, checkpoint->bytes);
    }
    end_allocate_to_pool(self, device, checkpoint->pool);
    *ret = (struct spw_torch_checkpoint){
        .allocated = {made, made + checkpoint->count, made + checkpoint->count}};
    return ret;
}
SPW_TORCH_RETURNS(set_checkpoint_pool_state)

struct string {
    const char *text;
    size_t length;
    char small[16];
};

static struct string *name(struct string *ret, struct fake_object *self)
{
    (void)self;
    ret->text = ret->small;
    ret->length = strlen(answered_name);
    (void)snprintf(ret->small, sizeof(ret->small), "%s", answered_name);
    return ret;
}
SPW_TORCH_RETURNS(name)

static void other_function(void)
{
    fprintf(stderr, "a function that the stand-in does not have\n");
    _Exit(3);
}

/* ---- the object ---- */

static const char class_name[] = "N3c104cuda20CUDACachingAllocator6Native22NativeCachingAllocatorE";
static const char other_name[] = "N3c104cuda20CUDACachingAllocator6Logging16LoggingAllocatorE";
static const void *type[] = {NULL, class_name};
static const void *other_type[] = {NULL, other_name};

/* The words of the type, the functions, one more, and the end. */
static struct {
    uintptr_t top;
    const void **type;
    fake_code *functions[FUNCTIONS + 2];
} table;

static struct fake_object native = {table.functions};

struct fake_object *_Atomic fake_allocator;

#define PUT(function, ours) table.functions[row->slots[SPW_TORCH_##function]] = (fake_code *)(ours);

static void fill_table(const struct spw_torch_row *row)
{
    for (int i = 0; i < FUNCTIONS; i++) {
        table.functions[i] = other_function;
    }
    PUT(ALLOCATE, SPW_TORCH_ENTRY(allocate))
    PUT(RAW_DELETER, raw_deleter)
    PUT(RAW_ALLOC, raw_alloc)
    PUT(RAW_ALLOC_WITH_STREAM, raw_alloc_with_stream)
    PUT(RAW_DELETE, raw_delete)
    PUT(INITIALIZED, initialized)
    PUT(ENABLE, enable)
    PUT(GET_MEMORY_FRACTION, get_memory_fraction)
    PUT(SET_MEMORY_FRACTION, set_memory_fraction)
    PUT(EMPTY_CACHE, empty_cache)
    PUT(GET_BASE_ALLOCATION, get_base_allocation)
    PUT(RECORD_STREAM, record_stream)
    PUT(GET_DEVICE_STATS, SPW_TORCH_ENTRY(get_device_stats))
    PUT(RESET_ACCUMULATED_STATS, reset_accumulated_stats)
    PUT(RESET_PEAK_STATS, reset_peak_stats)
    PUT(SNAPSHOT, SPW_TORCH_ENTRY(snapshot))
    PUT(BEGIN_ALLOCATE_TO_POOL, begin_allocate_to_pool)
    PUT(END_ALLOCATE_TO_POOL, end_allocate_to_pool)
    PUT(SHARE_IPC_HANDLE, SPW_TORCH_ENTRY(share_ipc_handle))
    PUT(RECORD_HISTORY, record_history)
    PUT(ATTACH_TRACE_TRACKER, attach_trace_tracker)
    PUT(SET_CHECKPOINT_POOL_STATE, SPW_TORCH_ENTRY(set_checkpoint_pool_state))
    PUT(GET_NAME, SPW_TORCH_ENTRY(name))
}

/* FAKE_TORCH: what is not as in the version. */
static void change_table(const char *change)
{
    enum { ANY = 30 };

    if (strcmp(change, "more") == 0) {
        table.functions[FUNCTIONS] = other_function;
    } else if (strcmp(change, "fewer") == 0) {
        table.functions[FUNCTIONS - 1] = NULL;
    } else if (strcmp(change, "null") == 0) {
        table.functions[ANY] = NULL;
    } else if (strcmp(change, "data") == 0) {
        table.functions[ANY] = (fake_code *)(uintptr_t)&native;
    } else if (strcmp(change, "name") == 0) {
        answered_name = "cudaMallocAsync";
    } else if (strcmp(change, "fraction") == 0) {
        answered_fraction = 7;
    } else if (strcmp(change, "typeless") == 0) {
        table.type = NULL;
    } else if (strcmp(change, "class") == 0) {
        table.type = other_type;
    }
}

static __attribute__((constructor)) void make(void)
{
    const char *change = getenv("FAKE_TORCH");

    _Static_assert(offsetof(struct figures, device_allocs) == 952, "as in the row");
    table.type = type;
    fill_table(spw_torch_row_of(2, 11));
    if (change != NULL) {
        change_table(change);
    }
    if (change == NULL || strcmp(change, "late") != 0) {
        fake_arrive();
    }
}

void fake_arrive(void)
{
    atomic_store(&fake_allocator, &native);
}

/* ---- other functions ---- */

/* Of another name in a library that lacks it. */
#ifdef LACKING
#    define STREAM_NAME "_ZNK3c104cuda10CUDAStream5otherEv"
#else
#    define STREAM_NAME "_ZNK3c104cuda10CUDAStream6streamEv"
#endif

#pragma GCC visibility push(default)
int fake_get_device(int8_t *ret_device) __asm__("_ZN3c104cuda9GetDeviceEPa");
struct spw_torch_stream
fake_current_stream(int8_t device) __asm__("_ZN3c104cuda20getCurrentCUDAStreamEa");
cudaStream_t fake_stream_handle(const struct spw_torch_stream *stream) __asm__(STREAM_NAME);
#pragma GCC visibility pop

int fake_get_device(int8_t *ret_device)
{
    int device = 0;
    cudaError_t err = cudaGetDevice(&device);

    *ret_device = (int8_t)device;
    return (int)err;
}

struct spw_torch_stream fake_current_stream(int8_t device)
{
    return (struct spw_torch_stream){SPW_TORCH_CUDA, device, (int64_t)(uintptr_t)current};
}

cudaStream_t fake_stream_handle(const struct spw_torch_stream *stream)
{
    return (cudaStream_t)(uintptr_t)stream->id;
}

void fake_set_stream(cudaStream_t stream)
{
    current = stream;
}

int fake_native_count(void)
{
    int count = 0;

    (void)pthread_mutex_lock(&lock);
    for (struct block *block = blocks; block != NULL; block = block->next) {
        count += block->used;
    }
    (void)pthread_mutex_unlock(&lock);
    return count;
}

int fake_native_asked(void)
{
    int count;

    (void)pthread_mutex_lock(&lock);
    count = asked_count;
    (void)pthread_mutex_unlock(&lock);
    return count;
}
