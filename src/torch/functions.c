/* Exceptions of PyTorch pass through these functions, so no lock or lease is held around a call of
 * the native allocator. If an object is returned in memory, its address is the first argument
 * (torch/returned.h). */
#include "torch/functions.h"

#include "device/device.h"
#include "process/native.h"
#include "serve/direct.h"
#include "submit/arguments.h"
#include "system/lock.h"
#include "system/log.h"
#include "torch/figures.h"
#include "torch/place.h"
#include "torch/returned.h"
#include "torch/share.h"
#include "torch/snapshot.h"
#include "torch/state.h"
#include "torch/tensors.h"
#include "torch/words.h"

#include <string.h>

static const struct spw_torch_library *const torch = &spw_torch.library;

/* Conditions that leave all requests to the native allocator. */
enum special {
    WITHOUT_CACHE = 1, /* the program called enable(False) */
    WITH_HISTORY = 2,  /* the allocator records its history */
    WITH_TRACKERS = 4, /* the allocator reports its segments to others */
    IN_SEGMENTS = 8,   /* the mode is segment */
    IN_POOL = 1 << 8,  /* this bit and the bits above it are the number of open private pools and
                          captures */
};

/* Calls the native function that `ours` replaces: NATIVE(RAW_ALLOC, raw_alloc)(self, bytes).
 * NATIVE_INTO is for functions that return an object in memory, at `ret`. */
#define NATIVE_CODE(function)  (torch->table[torch->row->slots[SPW_TORCH_##function]])
#define NATIVE(function, ours) ((__typeof__(ours) *)NATIVE_CODE(function))
#define NATIVE_INTO(function, ours, ret, ...)                                                      \
    SPW_TORCH_CALL(ours, NATIVE_CODE(function), ret, __VA_ARGS__)

static void *get_device_stats(void *ret, struct spw_torch_object *self, int8_t device);
static void empty_cache(struct spw_torch_object *self, struct spw_torch_pool_id id);
typedef double get_memory_fraction_function(struct spw_torch_object *self, int8_t device);
static struct spw_torch_data_ptr *allocate(struct spw_torch_data_ptr *ret,
                                           struct spw_torch_object *self, size_t bytes);

/* ---- the native part ---- */

/* Reads the native allocator's figures of a device. The caller must call end_figures. */
static void read_native(int device, void *figures)
{
    NATIVE_INTO(GET_DEVICE_STATS, get_device_stats, figures, torch->native, (int8_t)device);
}

static void end_figures(void *figures)
{
    const struct spw_torch_table *pools =
        (const void *)((const char *)figures + torch->row->private_pools);

    if (torch->row->private_pools != 0 && pools->last != 0) {
        torch->delete_memory(pools->entries);
    }
}

/* Updates the native allocator's figures. At the end of the process, the native allocator may no
 * longer exist. */
static void note_native(void)
{
    uint64_t left = spw_process_is_leaving()
                        ? 0
                        : atomic_load_explicit(&spw_torch.native_devices, memory_order_relaxed);
    _Alignas(16) char figures[SPW_TORCH_FIGURES_MOST];

    for (int device = 0; left != 0; device++, left >>= 1) {
        if ((left & 1) != 0) {
            read_native(device, figures);
            spw_lock(&spw_locks.tensors);
            spw_torch_figures_native(torch->row, device, figures);
            spw_unlock(&spw_locks.tensors);
            end_figures(figures);
        }
    }
}

static void note_allocated(void)
{
    int8_t device = 0;

    if (!spw_process_torch_is_tensor()) {
        return;
    }
    if (torch->get_device(&device) == 0) {
        atomic_fetch_or_explicit(&spw_torch.native_devices, UINT64_C(1) << device,
                                 memory_order_relaxed);
        note_native();
    }
}

/* Called before a call of the native allocator. Records the reason why the native allocator will
 * ask for memory, and the figures for its error message. */
static void say_native(void)
{
    int8_t device = 0;
    bool in_pool = atomic_load(&spw_torch.special) >= IN_POOL ||
                   atomic_load(&spw_process_driver()->captures_open) > 0;

    if (spw_process_native != SPW_NATIVE_REFUSED) {
        spw_process_native = in_pool ? SPW_NATIVE_PRIVATE : SPW_NATIVE_CACHES;
    }
    spw_torch_said.library = NULL;
    if (spw_process_torch_is_tensor() && torch->get_device(&device) == 0 &&
        device < spw_device_count()) {
        spw_lock(&spw_locks.tensors);
        spw_torch_said = (struct spw_torch_said){torch, spw_torch_figures_allocated(device),
                                                 spw_torch_figures_reserved(device)};
        spw_unlock(&spw_locks.tensors);
    }
}

/* ---- allocation ---- */

static bool is_plain(size_t bytes)
{
    enum { EXA_BITS = 60 }; /* PyTorch itself refuses larger requests */

    spw_process_native = SPW_NATIVE_CACHES;
    return bytes > 0 && bytes >> EXA_BITS == 0 &&
           SPW_LIKELY(atomic_load_explicit(&spw_torch.special, memory_order_relaxed) == 0) &&
           !*torch->traced && spw_process_serves() &&
           atomic_load_explicit(&spw_process_driver()->captures_open, memory_order_relaxed) == 0;
}

/* Returns the size of a tensor in PyTorch's figures. This is a multiple of 512 bytes. With the
 * setting roundup_power2_divisions, it is a multiple of a part of the distance between two powers
 * of two. */
static uint64_t rounded(size_t bytes)
{
    size_t divisions = torch->divisions != NULL ? torch->divisions(bytes) : 0;
    uint64_t part = 512;

    if (SPW_UNLIKELY(divisions > 1) && bytes > 512 * divisions) {
        part = (UINT64_C(1) << (63 - __builtin_clzll(bytes))) >> (63 - __builtin_clzll(divisions));
    }
    return (bytes + part - 1) & ~(part - 1);
}

/* Returns the most memory that the pool may use; 0 before the first block of the device. */
static uint64_t limit_of(int device)
{
    return spw_counter_get(&spw_device_at(device)->counters->limit_bytes);
}

/* Returns true if the program's share of the limit has no room for `bytes`. Returns false if there
 * is no limit. */
static bool is_beyond_share(int device, uint64_t bytes)
{
    double fraction = atomic_load_explicit(&spw_torch.fractions[device], memory_order_relaxed);
    uint64_t limit = limit_of(device), used;

    if (SPW_LIKELY(fraction == 0) || limit == 0) {
        return false;
    }
    spw_lock(&spw_locks.tensors);
    used = spw_torch_figures_allocated(device);
    spw_unlock(&spw_locks.tensors);
    return (double)(used + bytes) > fraction * (double)limit;
}

static void report(uint64_t address, int64_t bytes, int device)
{
    uint64_t allocated, reserved;

    if (SPW_LIKELY(!torch->is_profiled())) {
        return;
    }
    spw_lock(&spw_locks.tensors);
    allocated = spw_torch_figures_allocated(device);
    reserved = spw_torch_figures_reserved(device);
    spw_unlock(&spw_locks.tensors);
    torch->report((void *)(uintptr_t)address, bytes, allocated, reserved,
                  (uint16_t)(SPW_TORCH_CUDA | device << 8));
}

/* If the request would exceed the limit, first gives the native allocator's cache back. */
static void empty_native(int device, uint64_t bytes)
{
    static const struct spw_torch_pool_id all = {0, 0};
    const struct spw_counters *c = spw_device_at(device)->counters;
    uint64_t idle;

    if (SPW_LIKELY(spw_counter_get(&c->committed_bytes) + bytes <=
                   spw_counter_get(&c->limit_bytes)) ||
        atomic_load_explicit(&spw_torch.native_devices, memory_order_relaxed) == 0) {
        return;
    }
    spw_lock(&spw_locks.tensors);
    idle = spw_torch_figures_idle(device);
    spw_unlock(&spw_locks.tensors);
    if (idle > 0) {
        NATIVE(EMPTY_CACHE, empty_cache)(torch->native, all);
        note_native();
    }
}

/* Requests memory from the pool. A thread without a context gets one, as by the first allocation of
 * the runtime. Before the request is refused, waits for freed memory that other streams still
 * use. */
static enum spw_err ask(const struct spw_serve_request *request,
                        struct spw_torch_tensor *ret_tensor)
{
    uint64_t *address = &ret_tensor->address;
    struct spw_serve_order *order = &ret_tensor->order;
    enum spw_err err;

    (void)spw_torch_tensors_settle(/* wait */ false);
    empty_native(request->device, request->bytes);
    err = spw_serve_direct_alloc(request, address, order);
    if (SPW_UNLIKELY(err == SPW_E_AGAIN) && torch->bind(NULL) == 0) {
        err = spw_serve_direct_alloc(request, address, order);
    }
    if (SPW_UNLIKELY(err == SPW_E_NO_MEMORY) && spw_torch_tensors_settle(/* wait */ true)) {
        err = spw_serve_direct_alloc(request, address, order);
    }
    return err;
}

/* Asks the native allocator, once for each device, for the share that the settings give to the
 * program. Returns false if the share is not valid (above 0 and at most 1). */
static bool is_sound(int device)
{
    uint64_t bit = UINT64_C(1) << device;
    double fraction = 1;

    if (SPW_LIKELY((atomic_load_explicit(&spw_torch.asked_devices, memory_order_relaxed) & bit) !=
                   0)) {
        return true;
    }
    if (torch->row->slots[SPW_TORCH_GET_MEMORY_FRACTION] >= 0) {
        fraction = NATIVE(GET_MEMORY_FRACTION, get_memory_fraction_function)(torch->native,
                                                                             (int8_t)device);
    }
    if (!(fraction > 0 && fraction <= 1)) {
        if (atomic_load(&spw_torch.asked_devices) == 0) {
            spw_torch_place_take_out(torch);
        }
        return false; /* tensors of other devices need these functions */
    }
    atomic_store(&spw_torch.fractions[device], fraction < 1 ? fraction : 0);
    atomic_fetch_or(&spw_torch.asked_devices, bit);
    return true;
}

/* Allocates a tensor in the pool. Returns NULL if the native allocator must serve the request. */
static void *take(size_t bytes, int device, CUstream stream, const void *caller)
{
    const struct spw_serve_request request = {
        .device = device, .stream = stream, .bytes = bytes, .api = "PyTorch", .caller = caller};
    struct spw_torch_tensor tensor = {.asked = bytes, .bytes = rounded(bytes), .device = device};

    bool first;

    if (device >= spw_device_count() || !is_sound(device)) {
        return NULL;
    }
    first = limit_of(device) == 0;
    if (SPW_UNLIKELY(is_beyond_share(device, tensor.bytes))) {
        spw_process_native = SPW_NATIVE_REFUSED;
        return NULL;
    }
    if (ask(&request, &tensor) != SPW_OK) {
        return NULL;
    }
    if (SPW_UNLIKELY(first) && is_beyond_share(device, tensor.bytes)) {
        spw_process_native = SPW_NATIVE_REFUSED;
        spw_serve_direct_free(device, &tensor.order, tensor.address);
        return NULL;
    }
    if (!spw_torch_tensors_add(&tensor)) {
        spw_serve_direct_free(device, &tensor.order, tensor.address);
        return NULL;
    }
    report(tensor.address, (int64_t)tensor.bytes, device);
    return (void *)(uintptr_t)tensor.address;
}

/* Clears the stack below the caller's frame: `parts` times PART_BYTES. The pool leaves addresses of
 * blocks there. Unused bytes of kernels' arguments contain old content of the stack, and an address
 * in them looks like a use of the block (submit/arguments.h). */
static __attribute__((noinline)) void clear_stack(int parts)
{
    enum { PART_BYTES = 1024 };
    char part[PART_BYTES];

    memset(part, 0, sizeof(part));
    __asm__ volatile("" : : "r"(part) : "memory");
    if (parts > 1) {
        clear_stack(parts - 1);
    }
    __asm__ volatile("" : : "r"(part) : "memory");
}

enum { STACK_PARTS = 4 };

static inline void leave_no_addresses(void)
{
    if (SPW_UNLIKELY(spw_submit_arguments_wanted())) {
        clear_stack(STACK_PARTS);
    }
}

static CUstream current_stream(int8_t device)
{
    const struct spw_torch_stream stream = torch->current_stream(device);

    return torch->stream_handle(&stream);
}

/* Frees a tensor of the pool. Returns false if the memory is not such a tensor. */
static bool delete_tensor(void *memory)
{
    struct spw_torch_tensor tensor;

    if (!spw_torch_tensors_free((uintptr_t)memory, &tensor)) {
        return false;
    }
    leave_no_addresses();
    report(tensor.address, -(int64_t)tensor.bytes, tensor.device);
    return true;
}

static void delete_memory(void *memory)
{
    if (memory != NULL && !delete_tensor(memory)) {
        torch->deleter(memory);
        note_native();
    }
}

static __attribute__((noinline)) struct spw_torch_data_ptr *
allocate_natively(struct spw_torch_data_ptr *ret, struct spw_torch_object *self, size_t bytes)
{
    SPW_TORCH_PASSES_ERRORS;
    say_native();
    NATIVE_INTO(ALLOCATE, allocate, ret, self, bytes);
    if (ret->deleter == torch->deleter && ret->context == ret->data &&
        spw_process_torch_is_tensor()) {
        ret->deleter = delete_memory;
    }
    note_allocated();
    return ret;
}

static struct spw_torch_data_ptr *allocate(struct spw_torch_data_ptr *ret,
                                           struct spw_torch_object *self, size_t bytes)
{
    const void *caller = __builtin_return_address(0);
    int8_t device = 0;
    void *memory = NULL;

    if (is_plain(bytes) && torch->get_device(&device) == 0) {
        memory = take(bytes, device, current_stream(device), caller);
    }
    if (SPW_UNLIKELY(memory == NULL)) {
        return allocate_natively(ret, self, bytes);
    }
    leave_no_addresses();
    *ret = (struct spw_torch_data_ptr){memory, delete_memory, memory, SPW_TORCH_CUDA, device};
    return ret;
}
SPW_TORCH_RETURNS(allocate)

static spw_torch_deleter *raw_deleter(struct spw_torch_object *self)
{
    spw_torch_deleter *native = NATIVE(RAW_DELETER, raw_deleter)(self);

    return native == torch->deleter ? delete_memory : native;
}

static void *raw_alloc(struct spw_torch_object *self, size_t bytes)
{
    SPW_TORCH_PASSES_ERRORS;
    const void *caller = __builtin_return_address(0);
    int8_t device = 0;
    void *memory = NULL;

    if (is_plain(bytes) && torch->get_device(&device) == 0) {
        memory = take(bytes, device, current_stream(device), caller);
    }
    if (memory == NULL) {
        say_native();
        memory = NATIVE(RAW_ALLOC, raw_alloc)(self, bytes);
        note_allocated();
    }
    return memory;
}

static void *raw_alloc_with_stream(struct spw_torch_object *self, size_t bytes, CUstream stream)
{
    SPW_TORCH_PASSES_ERRORS;
    const void *caller = __builtin_return_address(0);
    int8_t device = 0;
    void *memory = NULL;

    if (is_plain(bytes) && torch->get_device(&device) == 0) {
        memory = take(bytes, device, stream, caller);
    }
    if (memory == NULL) {
        say_native();
        memory = NATIVE(RAW_ALLOC_WITH_STREAM, raw_alloc_with_stream)(self, bytes, stream);
        note_allocated();
    }
    return memory;
}

/* If its cache is disabled, the native allocator's raw_delete differs from its deleter. */
static void raw_delete(struct spw_torch_object *self, void *memory)
{
    if (memory != NULL && !delete_tensor(memory)) {
        NATIVE(RAW_DELETE, raw_delete)(self, memory);
        note_native();
    }
}

/* ---- streams and addresses ---- */

/* The native allocator ignores memory that does not have its own deleter. It therefore gets a copy
 * of `memory` with that deleter. */
static void record_stream(struct spw_torch_object *self, const struct spw_torch_data_ptr *memory,
                          struct spw_torch_stream stream)
{
    struct spw_torch_data_ptr native;

    if (memory->deleter != delete_memory) {
        NATIVE(RECORD_STREAM, record_stream)(self, memory, stream);
        return;
    }
    if (!spw_torch_tensors_use((uintptr_t)memory->data, torch->stream_handle(&stream))) {
        native = *memory;
        native.deleter = torch->deleter;
        NATIVE(RECORD_STREAM, record_stream)(self, &native, stream);
    }
}

static void *get_base_allocation(struct spw_torch_object *self, void *memory, size_t *ret_bytes)
{
    struct spw_torch_tensor tensor;

    if (!spw_torch_tensors_find((uintptr_t)memory, &tensor)) {
        return NATIVE(GET_BASE_ALLOCATION, get_base_allocation)(self, memory, ret_bytes);
    }
    if (ret_bytes != NULL) {
        *ret_bytes = tensor.bytes;
    }
    return memory;
}

/* ---- figures ---- */

static void *get_device_stats(void *ret, struct spw_torch_object *self, int8_t device)
{
    NATIVE_INTO(GET_DEVICE_STATS, get_device_stats, ret, self, device);
    spw_lock(&spw_locks.tensors);
    spw_torch_figures_add(torch->row, device, ret);
    spw_unlock(&spw_locks.tensors);
    return ret;
}
SPW_TORCH_RETURNS(get_device_stats)

static void reset_accumulated_stats(struct spw_torch_object *self, int8_t device)
{
    NATIVE(RESET_ACCUMULATED_STATS, reset_accumulated_stats)(self, device);
    spw_lock(&spw_locks.tensors);
    spw_torch_figures_reset_accumulated(device);
    spw_unlock(&spw_locks.tensors);
}

static void reset_peak_stats(struct spw_torch_object *self, int8_t device)
{
    NATIVE(RESET_PEAK_STATS, reset_peak_stats)(self, device);
    spw_serve_direct_reset_peak(device);
    spw_lock(&spw_locks.tensors);
    spw_torch_figures_reset_peaks(device);
    spw_unlock(&spw_locks.tensors);
}

/* Returns true if a snapshot is limited to a private pool. Such a pool contains no memory of
 * spillway's pool. */
static bool is_limited(struct spw_torch_pool_id id)
{
    if (torch->row->by_pool) {
        return id.first != 0 || id.second != 0;
    }
    return torch->active_pool != NULL && torch->active_pool() != NULL;
}

static void *snapshot(void *ret, struct spw_torch_object *self, struct spw_torch_pool_id id,
                      bool traces)
{
    NATIVE_INTO(SNAPSHOT, snapshot, ret, self, id, traces);
    if (!is_limited(id)) {
        spw_torch_snapshot_add(torch, ret);
    }
    return ret;
}
SPW_TORCH_RETURNS(snapshot)

/* ---- limits ---- */

static void set_memory_fraction(struct spw_torch_object *self, double fraction, int8_t device)
{
    NATIVE(SET_MEMORY_FRACTION, set_memory_fraction)(self, fraction, device);
    atomic_store(&spw_torch.fractions[device], fraction < 1 ? fraction : 0);
}

static void empty_cache(struct spw_torch_object *self, struct spw_torch_pool_id id)
{
    bool all = !torch->row->by_pool || (id.first == 0 && id.second == 0);

    if (all) {
        (void)spw_torch_tensors_settle(/* wait */ true);
    }
    NATIVE(EMPTY_CACHE, empty_cache)(self, id);
    note_native();
    if (all) {
        spw_serve_direct_trim();
    }
}

/* ---- what makes requests special ---- */

static void set_special(enum special bit, bool on)
{
    if (on) {
        atomic_fetch_or(&spw_torch.special, bit);
    } else {
        atomic_fetch_and(&spw_torch.special, ~(int)bit);
    }
}

static void enable(struct spw_torch_object *self, bool on)
{
    NATIVE(ENABLE, enable)(self, on);
    set_special(WITHOUT_CACHE, !on);
}

/* A capture may follow, and nothing can move during a capture. PyTorch asks programs to run the
 * code before they capture it, so the capture probably needs no more memory than the peak so
 * far. */
static void make_room(int device)
{
    /* PyTorch's workspaces for cuBLAS and cuBLASLt on the capture's stream, 32 MiB each on Hopper.
     * Two threads have them: the thread of the capture, and the thread of its backward pass. */
    static const uint64_t workspaces = UINT64_C(128) << 20;
    uint64_t bytes;

    if (device >= spw_device_count() || spw_device_at(device)->counters == NULL) {
        return;
    }
    spw_lock(&spw_locks.tensors);
    bytes = spw_torch_figures_below_peak(device);
    spw_unlock(&spw_locks.tensors);
    spw_serve_direct_make_room(device, bytes + workspaces);
}

static void begin_allocate_to_pool(struct spw_torch_object *self, int8_t device,
                                   struct spw_torch_pool_id id, void *filter)
{
    if (spw_process_torch_is_tensor()) {
        make_room(device);
    }
    NATIVE(BEGIN_ALLOCATE_TO_POOL, begin_allocate_to_pool)
    (self, device, id, filter); /* may throw */
    atomic_fetch_add(&spw_torch.special, IN_POOL);
}

static void end_allocate_to_pool(struct spw_torch_object *self, int8_t device,
                                 struct spw_torch_pool_id id)
{
    NATIVE(END_ALLOCATE_TO_POOL, end_allocate_to_pool)(self, device, id);
    atomic_fetch_sub(&spw_torch.special, IN_POOL);
}

static void tell_native(const char *why)
{
    if (!atomic_flag_test_and_set(&spw_torch.said_cache)) {
        spw_log_always("%s: from now on its own cache serves all tensors (as in mode segment)",
                       why);
    }
}

static void record_history(struct spw_torch_object *self, bool on, void *recorder, size_t most,
                           uint64_t when, uint64_t clear, const void *skipped)
{
    if (on) {
        tell_native("PyTorch records the history of its memory");
    }
    set_special(WITH_HISTORY, on);
    NATIVE(RECORD_HISTORY, record_history)(self, on, recorder, most, when, clear, skipped);
}

static void attach_trace_tracker(struct spw_torch_object *self, void *tracker)
{
    tell_native("a library follows the segments of PyTorch");
    set_special(WITH_TRACKERS, true);
    NATIVE(ATTACH_TRACE_TRACKER, attach_trace_tracker)(self, tracker);
}

/* ---- private pools and other processes ---- */

static void *set_checkpoint_pool_state(struct spw_torch_checkpoint *ret,
                                       struct spw_torch_object *self, int8_t device, void *state)
{
    NATIVE_INTO(SET_CHECKPOINT_POOL_STATE, set_checkpoint_pool_state, ret, self, device, state);
    for (struct spw_torch_data_ptr *at = ret->allocated.begin;
         at != (struct spw_torch_data_ptr *)ret->allocated.end; at++) {
        if (at->deleter == torch->deleter) {
            at->deleter = delete_memory;
        }
    }
    note_native();
    return ret;
}
SPW_TORCH_RETURNS(set_checkpoint_pool_state)

static void *share_ipc_handle(void *ret, struct spw_torch_object *self, void *memory)
{
    struct spw_torch_tensor tensor;

    if (!spw_torch_tensors_find((uintptr_t)memory, &tensor) ||
        !spw_torch_share(torch, &tensor, ret)) {
        NATIVE_INTO(SHARE_IPC_HANDLE, share_ipc_handle, ret, self, memory); /* may throw */
    }
    return ret;
}
SPW_TORCH_RETURNS(share_ipc_handle)

void spw_torch_functions_fill(spw_torch_code **table, bool tensors)
{
    const int *slots = torch->row->slots;

#define PUT(function, ours)                                                                        \
    if (slots[SPW_TORCH_##function] >= 0) {                                                        \
        table[slots[SPW_TORCH_##function]] = (spw_torch_code *)(ours);                             \
    }
    PUT(ALLOCATE, SPW_TORCH_ENTRY(allocate))
    PUT(RAW_ALLOC, raw_alloc)
    PUT(RAW_ALLOC_WITH_STREAM, raw_alloc_with_stream)
    PUT(BEGIN_ALLOCATE_TO_POOL, begin_allocate_to_pool)
    PUT(END_ALLOCATE_TO_POOL, end_allocate_to_pool)
    if (!tensors) {
        set_special(IN_SEGMENTS, true);
        return;
    }
    PUT(RAW_DELETER, raw_deleter)
    PUT(RAW_DELETE, raw_delete)
    PUT(ENABLE, enable)
    PUT(SET_MEMORY_FRACTION, set_memory_fraction)
    PUT(EMPTY_CACHE, empty_cache)
    PUT(GET_BASE_ALLOCATION, get_base_allocation)
    PUT(RECORD_STREAM, record_stream)
    PUT(GET_DEVICE_STATS, SPW_TORCH_ENTRY(get_device_stats))
    PUT(RESET_ACCUMULATED_STATS, reset_accumulated_stats)
    PUT(RESET_PEAK_STATS, reset_peak_stats)
    PUT(SNAPSHOT, SPW_TORCH_ENTRY(snapshot))
    PUT(SHARE_IPC_HANDLE, SPW_TORCH_ENTRY(share_ipc_handle))
    PUT(RECORD_HISTORY, record_history)
    PUT(ATTACH_TRACE_TRACKER, attach_trace_tracker)
    PUT(SET_CHECKPOINT_POOL_STATE, SPW_TORCH_ENTRY(set_checkpoint_pool_state))
#undef PUT
}
