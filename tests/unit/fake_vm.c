#include "fake_vm.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_CHUNKS = 1 << 20 };

struct fake_fence {
    uint64_t time;
    uint64_t stream;
};

/* A fence is its own handle, so that it needs no memory. */
static void *pack(struct fake_fence fence)
{
    return (void *)(uintptr_t)(fence.time * FAKE_STREAMS + fence.stream);
}

static struct fake_fence unpack(const void *handle)
{
    return (struct fake_fence){.time = (uintptr_t)handle / FAKE_STREAMS,
                               .stream = (uintptr_t)handle % FAKE_STREAMS};
}

/* ---- actions of the test ---- */

static const struct spw_vm_ops ops;

void fake_vm_init(struct fake_vm *vm)
{
    memset(vm, 0, sizeof(*vm));
    vm->seam.ops = &ops;
    pthread_mutex_init(&vm->lock, NULL);
    pthread_cond_init(&vm->changed, NULL);
    vm->chunk_used = calloc(MOST_CHUNKS, 1);
    vm->chunk_tier = calloc(MOST_CHUNKS, 1);
    vm->chunk_size = calloc(MOST_CHUNKS, 1);
    vm->chunk_value = calloc(MOST_CHUNKS, sizeof(*vm->chunk_value));
    vm->fail_call = -1;
}

void fake_vm_fini(struct fake_vm *vm)
{
    free(vm->mapped);
    free(vm->accessible);
    free(vm->copied);
    free(vm->chunk_used);
    free(vm->chunk_tier);
    free(vm->chunk_size);
    free(vm->chunk_value);
    pthread_cond_destroy(&vm->changed);
    pthread_mutex_destroy(&vm->lock);
}

/* Work up to a point in time is complete. */
static void finish(struct fake_vm *vm, uint64_t time)
{
    vm->finished = time > vm->finished ? time : vm->finished;
    if (vm->on_finished != NULL) {
        vm->on_finished(vm);
    }
}

void fake_vm_complete(struct fake_vm *vm)
{
    pthread_mutex_lock(&vm->lock);
    finish(vm, vm->clock);
    pthread_mutex_unlock(&vm->lock);
}

uint64_t fake_vm_submit(struct fake_vm *vm)
{
    uint64_t time;

    pthread_mutex_lock(&vm->lock);
    time = ++vm->clock;
    pthread_mutex_unlock(&vm->lock);
    return time;
}

void fake_vm_complete_stream(struct fake_vm *vm, uint64_t stream_id)
{
    pthread_mutex_lock(&vm->lock);
    vm->stream_finished[stream_id % FAKE_STREAMS] = vm->clock;
    pthread_mutex_unlock(&vm->lock);
}

void fake_vm_hold_waits(struct fake_vm *vm, bool hold)
{
    pthread_mutex_lock(&vm->lock);
    vm->holding = hold;
    pthread_cond_broadcast(&vm->changed);
    pthread_mutex_unlock(&vm->lock);
}

void fake_vm_await_waiter(struct fake_vm *vm)
{
    pthread_mutex_lock(&vm->lock);
    while (vm->waiters == 0) {
        pthread_cond_wait(&vm->changed, &vm->lock);
    }
    pthread_mutex_unlock(&vm->lock);
}

size_t fake_vm_memory_calls(const struct fake_vm *vm)
{
    return vm->calls[FAKE_CREATE] + vm->calls[FAKE_RELEASE] + vm->calls[FAKE_MAP] +
           vm->calls[FAKE_ACCESS] + vm->calls[FAKE_UNMAP];
}

size_t fake_vm_calls(const struct fake_vm *vm)
{
    size_t sum = 0;

    for (size_t i = 0; i < FAKE_CALLS; i++) {
        sum += vm->calls[i];
    }
    return sum;
}

static size_t index_of(const struct fake_vm *vm, uint64_t address)
{
    return (size_t)((address - vm->base) / FAKE_GRANULE);
}

size_t fake_vm_on_host(const struct fake_vm *vm, uint64_t address, uint64_t bytes)
{
    size_t count = 0;

    for (size_t i = index_of(vm, address); i <= index_of(vm, address + bytes - 1); i++) {
        count += vm->mapped[i] != 0 && vm->chunk_tier[vm->mapped[i] - 1] == SPW_TIER_HOST;
    }
    return count;
}

void fake_vm_write(struct fake_vm *vm, uint64_t address, uint64_t bytes, uint64_t value)
{
    for (size_t i = index_of(vm, address); i <= index_of(vm, address + bytes - 1); i++) {
        vm->chunk_value[vm->mapped[i] - 1] = value++;
    }
}

size_t fake_vm_differs(const struct fake_vm *vm, uint64_t address, uint64_t bytes, uint64_t value)
{
    size_t count = 0;

    for (size_t i = index_of(vm, address); i <= index_of(vm, address + bytes - 1); i++) {
        count += vm->mapped[i] == 0 || vm->chunk_value[vm->mapped[i] - 1] != value;
        value++;
    }
    return count;
}

bool fake_vm_usable(const struct fake_vm *vm, uint64_t address, uint64_t bytes)
{
    if (address < vm->base || address + bytes > vm->base + vm->bytes) {
        return false;
    }
    for (size_t i = index_of(vm, address); i <= index_of(vm, address + bytes - 1); i++) {
        if (vm->mapped[i] == 0 || !vm->accessible[i]) {
            return false;
        }
    }
    return true;
}

/* ---- the backend ---- */

static uint64_t draw(struct fake_vm *vm, uint64_t bound)
{
    vm->seed = vm->seed * 6364136223846793005ull + 1442695040888963407ull;
    return (vm->seed >> 33) % bound;
}

/* Counts a call and returns whether it must fail; each call advances time. */
static bool fails(struct fake_vm *vm, enum fake_call call)
{
    vm->calls[call]++;
    if (vm->seed != 0 && vm->finished < vm->clock && draw(vm, 3) == 0) {
        finish(vm, vm->finished + 1 + draw(vm, vm->clock - vm->finished));
    }
    if (vm->fail_call != (int)call || vm->fail_after-- > 0) {
        return false;
    }
    if (vm->fail_more > 0) {
        vm->fail_more--;
        vm->fail_after = 0;
    }
    return true;
}

static bool is_complete(const struct fake_vm *vm, struct fake_fence fence)
{
    return fence.time <= vm->finished ||
           (fence.stream != SPW_STREAM_ALL && fence.time <= vm->stream_finished[fence.stream]);
}

static enum spw_err reserve(struct fake_vm *vm, uint64_t bytes, uint64_t *ret_address)
{
    if (fails(vm, FAKE_RESERVE)) {
        return SPW_E_NO_MEMORY;
    }
    vm->base = 1ull << 40;
    vm->bytes = bytes;
    vm->granules = (size_t)(bytes / FAKE_GRANULE);
    vm->mapped = calloc(vm->granules, sizeof(*vm->mapped));
    vm->accessible = calloc(vm->granules, sizeof(*vm->accessible));
    vm->copied = calloc(vm->granules, sizeof(*vm->copied));
    if (vm->mapped == NULL || vm->accessible == NULL || vm->copied == NULL) {
        return SPW_E_METADATA_NOMEM;
    }
    *ret_address = vm->base;
    return SPW_OK;
}

static void unreserve(struct fake_vm *vm, uint64_t address, uint64_t bytes)
{
    vm->violations += address != vm->base || bytes != vm->bytes;
    for (size_t i = 0; i < vm->granules; i++) {
        vm->violations += vm->mapped[i] != 0;
    }
}

static enum spw_err create(struct fake_vm *vm, enum spw_tier tier, uint64_t bytes,
                           uint64_t *ret_chunk)
{
    bool host = tier == SPW_TIER_HOST;
    size_t count = bytes / FAKE_GRANULE;

    if (fails(vm, FAKE_CREATE) ||
        (!host && vm->most_chunks != 0 && vm->chunks + count > vm->most_chunks) ||
        (host && vm->most_host_chunks != 0 && vm->host_chunks + count > vm->most_host_chunks)) {
        return vm->refusal != SPW_OK ? vm->refusal : SPW_E_NO_MEMORY;
    }
    vm->violations += bytes == 0 || bytes % FAKE_GRANULE != 0;
    *(host ? &vm->host_chunks : &vm->chunks) += count;
    *ret_chunk = vm->chunk_numbers;
    vm->chunk_numbers += count;
    vm->chunk_size[*ret_chunk] = (uint8_t)count;
    for (size_t i = *ret_chunk; i < *ret_chunk + count; i++) {
        vm->chunk_tier[i] = (uint8_t)tier;
        vm->chunk_used[i] = 1;
    }
    return SPW_OK;
}

static enum spw_err release(struct fake_vm *vm, uint64_t chunk)
{
    if (fails(vm, FAKE_RELEASE)) {
        return SPW_E_DRIVER - 999;
    }
    vm->violations += vm->chunk_size[chunk] == 0;
    for (size_t i = chunk; i < chunk + vm->chunk_size[chunk]; i++) {
        vm->violations += vm->chunk_used[i] != 1;
        vm->chunk_used[i] = 0;
    }
    *(vm->chunk_tier[chunk] == SPW_TIER_HOST ? &vm->host_chunks : &vm->chunks) -=
        vm->chunk_size[chunk];
    vm->chunk_size[chunk] = 0;
    return SPW_OK;
}

/* A chunk is mapped once, or twice if one of the places is behind the arena. */
static bool may_map(const struct fake_vm *vm, size_t index, uint64_t chunk)
{
    size_t arena = (vm->granules - 1) / 5 * 4;

    if (vm->chunk_used[chunk] != 2) {
        return vm->chunk_used[chunk] == 1;
    }
    for (size_t i = index < arena ? arena : 0; i < (index < arena ? vm->granules : arena); i++) {
        if (vm->mapped[i] == chunk + 1) {
            return true;
        }
    }
    return false;
}

static enum spw_err map(struct fake_vm *vm, uint64_t address, uint64_t bytes, uint64_t chunk)
{
    size_t i = index_of(vm, address);

    if (fails(vm, FAKE_MAP)) {
        return SPW_E_DRIVER - 999;
    }
    vm->violations += address % FAKE_GRANULE != 0 || vm->chunk_size[chunk] == 0 ||
                      bytes != (uint64_t)vm->chunk_size[chunk] * FAKE_GRANULE;
    for (size_t end = i + vm->chunk_size[chunk]; i < end; i++, chunk++) {
        if (i >= vm->granules) {
            vm->violations++;
            break;
        }
        vm->violations += vm->mapped[i] != 0 || !may_map(vm, i, chunk);
        vm->mapped[i] = chunk + 1;
        vm->accessible[i] = false;
        vm->chunk_used[chunk]++;
    }
    return SPW_OK;
}

/* True if [address, address + bytes) is made of whole mappings of chunks of one size. */
static bool is_whole(const struct fake_vm *vm, uint64_t address, uint64_t bytes,
                     uint64_t chunk_bytes)
{
    size_t size = chunk_bytes / FAKE_GRANULE;

    for (size_t i = index_of(vm, address); i < index_of(vm, address + bytes); i += size) {
        if (vm->mapped[i] == 0 || vm->chunk_size[vm->mapped[i] - 1] != size) {
            return false;
        }
    }
    return bytes % chunk_bytes == 0;
}

static enum spw_err set_access(struct fake_vm *vm, uint64_t address, uint64_t bytes,
                               uint64_t chunk_bytes)
{
    if (fails(vm, FAKE_ACCESS)) {
        return SPW_E_DRIVER - 999;
    }
    vm->violations += !is_whole(vm, address, bytes, chunk_bytes);
    for (size_t i = index_of(vm, address); i < index_of(vm, address + bytes); i++) {
        vm->violations += vm->mapped[i] == 0 || vm->accessible[i];
        vm->accessible[i] = true;
    }
    return SPW_OK;
}

static enum spw_err share(struct fake_vm *vm, uint64_t address, uint64_t bytes,
                          uint64_t chunk_bytes)
{
    if (fails(vm, FAKE_ACCESS)) {
        return SPW_E_DRIVER - 999;
    }
    vm->violations += !is_whole(vm, address, bytes, chunk_bytes);
    for (size_t i = index_of(vm, address); i < index_of(vm, address + bytes); i++) {
        vm->violations += vm->mapped[i] == 0;
        vm->shared++;
    }
    return SPW_OK;
}

static enum spw_err unmap(struct fake_vm *vm, uint64_t address, uint64_t bytes,
                          uint64_t chunk_bytes, uint64_t *ret_done)
{
    size_t first = index_of(vm, address), last = index_of(vm, address + bytes);
    size_t size = chunk_bytes / FAKE_GRANULE;
    bool fail = fails(vm, FAKE_UNMAP);

    vm->violations += !is_whole(vm, address, bytes, chunk_bytes);
    if (vm->unmap_fails || (vm->keeps_inaccessible && !vm->accessible[first])) {
        *ret_done = 0;
        return SPW_E_DRIVER - 999;
    }
    if (fail) {
        last = first + (last - first) / size / 2 * size;
        *ret_done = (uint64_t)(last - first) * FAKE_GRANULE;
    }
    for (size_t i = first; i < last; i++) {
        if (vm->mapped[i] == 0) {
            vm->violations++;
            continue;
        }
        vm->violations += !is_complete(vm, unpack((void *)(uintptr_t)vm->copied[i]));
        vm->chunk_used[vm->mapped[i] - 1]--;
        vm->mapped[i] = 0;
        vm->accessible[i] = false;
    }
    return fail ? SPW_E_DRIVER - 999 : SPW_OK;
}

static enum spw_err fence(struct fake_vm *vm, const struct spw_stream *stream, void **ret_fence)
{
    struct fake_fence fence = {.stream = stream->id % FAKE_STREAMS};

    if (fails(vm, FAKE_FENCE) || vm->capturing) {
        return SPW_E_AGAIN;
    }
    vm->violations += vm->stream_gone[stream->id % FAKE_STREAMS];
    fence.time = ++vm->clock;
    vm->fenced_stream = stream->id;
    if (vm->immediate) {
        vm->finished = vm->clock;
    }
    vm->live_fences++;
    *ret_fence = pack(fence);
    return SPW_OK;
}

static enum spw_err query(struct fake_vm *vm, const void *fence)
{
    if (fails(vm, FAKE_QUERY) || vm->capturing) {
        return SPW_E_AGAIN;
    }
    return is_complete(vm, unpack(fence)) ? SPW_OK : SPW_E_AGAIN;
}

static enum spw_err await(struct fake_vm *vm, const void *fence)
{
    vm->waiters++;
    pthread_cond_broadcast(&vm->changed);
    while (vm->holding) {
        pthread_cond_wait(&vm->changed, &vm->lock);
    }
    vm->waiters--;
    finish(vm, unpack(fence).time);
    return SPW_OK;
}

static enum spw_err wait_host(struct fake_vm *vm, const void *fence)
{
    return fails(vm, FAKE_WAIT_HOST) || vm->capturing ? SPW_E_AGAIN : await(vm, fence);
}

static enum spw_err wait_soon(struct fake_vm *vm, const void *fence)
{
    bool complete = is_complete(vm, unpack(fence));

    if (fails(vm, FAKE_WAIT_SOON) || vm->capturing || (vm->impatient && !complete)) {
        return SPW_E_AGAIN;
    }
    return await(vm, fence);
}

static enum spw_err wait_stream(struct fake_vm *vm, const struct spw_stream *stream,
                                const void *fence)
{
    if (fails(vm, FAKE_WAIT_STREAM)) {
        return SPW_E_DRIVER - 999;
    }
    vm->violations += vm->stream_gone[stream->id % FAKE_STREAMS];
    vm->waiting_stream = stream->id;
    vm->waited_stream = unpack(fence).stream;
    return SPW_OK;
}

/* ---- the host ---- */

static enum spw_err probe_host(struct fake_vm *vm, bool *ret_moves)
{
    if (vm->capturing) {
        return SPW_E_AGAIN;
    }
    *ret_moves = !vm->no_moves;
    return fails(vm, FAKE_PROBE) || vm->no_host ? SPW_E_UNSUPPORTED : SPW_OK;
}

static enum spw_err probe_pinned(struct fake_vm *vm, uint64_t address, uint64_t bytes)
{
    vm->violations += address < FAKE_PINNED || address + bytes > vm->pinned_end;
    return fails(vm, FAKE_PROBE) || vm->no_pinned ? SPW_E_UNSUPPORTED : SPW_OK;
}

/* Pieces lie apart from each other; their handles encode size and number. */
static enum spw_err pin(struct fake_vm *vm, void *context, uint64_t bytes,
                        struct spw_vm_pinned *ret_pinned)
{
    if (fails(vm, FAKE_PIN) || (vm->most_host_chunks != 0 &&
                                vm->pinned_bytes + bytes > vm->most_host_chunks * FAKE_GRANULE)) {
        return SPW_E_NO_MEMORY;
    }
    vm->pinned_end += (vm->pinned_end == 0 ? FAKE_PINNED : FAKE_GRANULE);
    *ret_pinned = (struct spw_vm_pinned){
        .address = vm->pinned_end, .memory = bytes, .context = context, .lasting = !vm->pins_apart};
    vm->pinned_end += bytes;
    vm->pinned_bytes += bytes;
    vm->pinned_pieces++;
    return SPW_OK;
}

static enum spw_err unpin(struct fake_vm *vm, uint64_t memory)
{
    if (fails(vm, FAKE_UNPIN) || vm->capturing) {
        return SPW_E_AGAIN;
    }
    vm->violations += vm->pinned_pieces == 0 || memory > vm->pinned_bytes;
    vm->pinned_bytes -= memory;
    vm->pinned_pieces--;
    return SPW_OK;
}

/* Copies at once, behind earlier work if it must; the fence nevertheless completes later. */
static enum spw_err copy(struct fake_vm *vm, const struct spw_vm_copy *copies, size_t count,
                         bool after_all, void **ret_fence)
{
    const struct spw_stream own = {.id = FAKE_STREAMS - 1};
    enum spw_err err;

    *ret_fence = NULL;
    if (fails(vm, FAKE_COPY) || vm->capturing) {
        return SPW_E_AGAIN;
    }
    if (after_all && vm->on_finished != NULL) {
        finish(vm, vm->clock);
    }
    for (size_t c = 0; c < count; c++) {
        size_t to = index_of(vm, copies[c].to), from = index_of(vm, copies[c].from);

        for (size_t i = 0; i < copies[c].bytes / FAKE_GRANULE; i++) {
            vm->violations += !vm->accessible[to + i] || !vm->accessible[from + i];
            vm->chunk_value[vm->mapped[to + i] - 1] = vm->chunk_value[vm->mapped[from + i] - 1];
        }
    }
    err = fence(vm, &own, ret_fence);
    for (size_t c = 0; c < count && err == SPW_OK; c++) {
        for (uint64_t at = 0; at < copies[c].bytes; at += FAKE_GRANULE) {
            vm->copied[index_of(vm, copies[c].to + at)] = (uintptr_t)*ret_fence;
            vm->copied[index_of(vm, copies[c].from + at)] = (uintptr_t)*ret_fence;
        }
    }
    return err;
}

/* A granule's content is one number, which is also the first of its bytes. */
static enum spw_err read(struct fake_vm *vm, void *to, uint64_t address, uint64_t bytes)
{
    unsigned char *at = to;

    if (fails(vm, FAKE_READ)) {
        return SPW_E_DRIVER - 999;
    }
    memset(to, 0, bytes);
    for (uint64_t done = 0; done < bytes; done += FAKE_GRANULE) {
        size_t i = index_of(vm, address + done);

        vm->violations += !vm->accessible[i];
        if (vm->mapped[i] != 0 && (address + done) % FAKE_GRANULE == 0) {
            memcpy(at + done, &vm->chunk_value[vm->mapped[i] - 1], sizeof(uint64_t));
        }
    }
    return SPW_OK;
}

static enum spw_err write(struct fake_vm *vm, uint64_t address, const void *from, uint64_t bytes)
{
    const unsigned char *at = from;

    if (fails(vm, FAKE_WRITE)) {
        return SPW_E_DRIVER - 999;
    }
    for (uint64_t done = 0; done < bytes; done += FAKE_GRANULE) {
        size_t i = index_of(vm, address + done);

        vm->violations += !vm->accessible[i];
        if (vm->mapped[i] != 0 && (address + done) % FAKE_GRANULE == 0) {
            memcpy(&vm->chunk_value[vm->mapped[i] - 1], at + done, sizeof(uint64_t));
        }
    }
    return SPW_OK;
}

static enum spw_err hash(struct fake_vm *vm, uint64_t address, uint64_t bytes, uint64_t *ret_hash)
{
    if (fails(vm, FAKE_HASH)) {
        return SPW_E_DRIVER - 999;
    }
    *ret_hash = 0;
    for (size_t i = index_of(vm, address); i < index_of(vm, address + bytes); i++) {
        vm->violations += !vm->accessible[i];
        *ret_hash = *ret_hash * 31 + vm->chunk_value[vm->mapped[i] - 1];
    }
    return SPW_OK;
}

/* ---- the same, locked ---- */

#define FAKE_LOCKED(parameters, name, arguments)                                                   \
    static enum spw_err fake_##name parameters                                                     \
    {                                                                                              \
        struct fake_vm *vm = (struct fake_vm *)self;                                               \
        enum spw_err err;                                                                          \
                                                                                                   \
        pthread_mutex_lock(&vm->lock);                                                             \
        err = name arguments;                                                                      \
        pthread_mutex_unlock(&vm->lock);                                                           \
        return err;                                                                                \
    }

FAKE_LOCKED((struct spw_vm * self, uint64_t bytes, uint64_t *ret_address), reserve,
            (vm, bytes, ret_address))
FAKE_LOCKED((struct spw_vm * self, enum spw_tier tier, uint64_t bytes, uint64_t *ret_chunk), create,
            (vm, tier, bytes, ret_chunk))
FAKE_LOCKED((struct spw_vm * self, uint64_t chunk), release, (vm, chunk))
FAKE_LOCKED((struct spw_vm * self, uint64_t address, uint64_t bytes, uint64_t chunk), map,
            (vm, address, bytes, chunk))
FAKE_LOCKED((struct spw_vm * self, uint64_t address, uint64_t bytes, uint64_t chunk_bytes),
            set_access, (vm, address, bytes, chunk_bytes))
FAKE_LOCKED((struct spw_vm * self, uint64_t address, uint64_t bytes, uint64_t chunk_bytes), share,
            (vm, address, bytes, chunk_bytes))
FAKE_LOCKED((struct spw_vm * self, uint64_t address, uint64_t bytes, uint64_t chunk_bytes,
             uint64_t *ret_done),
            unmap, (vm, address, bytes, chunk_bytes, ret_done))
FAKE_LOCKED((struct spw_vm * self, const struct spw_stream *stream, void **ret_fence), fence,
            (vm, stream, ret_fence))
FAKE_LOCKED((struct spw_vm * self, void *asked), query, (vm, asked))
FAKE_LOCKED((struct spw_vm * self, void *awaited), wait_host, (vm, awaited))
FAKE_LOCKED((struct spw_vm * self, void *awaited), wait_soon, (vm, awaited))
FAKE_LOCKED((struct spw_vm * self, bool *ret_moves), probe_host, (vm, ret_moves))
FAKE_LOCKED((struct spw_vm * self, uint64_t address, uint64_t bytes), probe_pinned,
            (vm, address, bytes))
FAKE_LOCKED((struct spw_vm * self, void *context, uint64_t bytes, struct spw_vm_pinned *ret_pinned),
            pin, (vm, context, bytes, ret_pinned))
FAKE_LOCKED((struct spw_vm * self, uint64_t memory), unpin, (vm, memory))
FAKE_LOCKED((struct spw_vm * self, enum spw_tier to, const struct spw_vm_copy *copies, size_t count,
             bool after_all, void **ret_fence),
            copy, (vm, copies, count, after_all, ret_fence))
FAKE_LOCKED((struct spw_vm * self, void *to, uint64_t address, uint64_t bytes), read,
            (vm, to, address, bytes))
FAKE_LOCKED((struct spw_vm * self, uint64_t address, const void *from, uint64_t bytes), write,
            (vm, address, from, bytes))
FAKE_LOCKED((struct spw_vm * self, uint64_t address, uint64_t bytes, uint64_t *ret_hash), hash,
            (vm, address, bytes, ret_hash))
FAKE_LOCKED((struct spw_vm * self, const struct spw_stream *stream, void *awaited), wait_stream,
            (vm, stream, awaited))
#undef FAKE_LOCKED

static void fake_unreserve(struct spw_vm *self, uint64_t address, uint64_t bytes)
{
    struct fake_vm *vm = (struct fake_vm *)self;

    pthread_mutex_lock(&vm->lock);
    unreserve(vm, address, bytes);
    pthread_mutex_unlock(&vm->lock);
}

static void fake_drop(struct spw_vm *self, void *dropped)
{
    struct fake_vm *vm = (struct fake_vm *)self;

    pthread_mutex_lock(&vm->lock);
    vm->live_fences--;
    pthread_mutex_unlock(&vm->lock);
}

static void fake_seek_host(struct spw_vm *self)
{
    struct fake_vm *vm = (struct fake_vm *)self;

    vm->seeks++;
}

static bool fake_defers(struct spw_vm *self)
{
    const struct fake_vm *vm = (struct fake_vm *)self;

    return vm->defers;
}

static enum spw_err fake_create_exportable(struct spw_vm *self, uint64_t bytes, uint64_t *ret_chunk)
{
    return fake_create(self, SPW_TIER_DEVICE, bytes, ret_chunk);
}

static uint64_t fake_room(struct spw_vm *self)
{
    const struct fake_vm *vm = (struct fake_vm *)self;
    size_t taken = vm->chunks + vm->others;

    return taken < vm->memory ? (vm->memory - taken) * (uint64_t)FAKE_GRANULE : 0;
}

static const struct spw_vm_ops ops = {
    .room = fake_room,
    .reserve = fake_reserve,
    .unreserve = fake_unreserve,
    .create = fake_create,
    .release = fake_release,
    .create_exportable = fake_create_exportable,
    .map = fake_map,
    .set_access = fake_set_access,
    .share = fake_share,
    .unmap = fake_unmap,
    .fence = fake_fence,
    .query = fake_query,
    .wait_host = fake_wait_host,
    .wait_soon = fake_wait_soon,
    .wait_stream = fake_wait_stream,
    .drop = fake_drop,
    .defers = fake_defers,
    .seek_host = fake_seek_host,
    .probe_host = fake_probe_host,
    .probe_pinned = fake_probe_pinned,
    .pin = fake_pin,
    .unpin = fake_unpin,
    .copy = fake_copy,
    .read = fake_read,
    .write = fake_write,
    .hash = fake_hash,
};
