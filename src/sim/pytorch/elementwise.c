/* Kernels that apply a functor to each element of some tensors (ATen/native/cuda/CUDALoops.cuh). */
#include <stdlib.h>
#include <string.h>

#include "sim/driver/memory/content.h"
#include "sim/pytorch/kind.h"
#include "sim/pytorch/strides.h"

/* The maximum number of tensors of a kernel: the result and the inputs. */
enum { TENSORS = 1 + SIM_FUNCTOR_INPUTS };

/* A device moves memory in pieces of this size. */
enum { SECTOR_BYTES = 32 };

struct loop {
    uint64_t count;
    size_t tensors;
    CUdeviceptr data[TENSORS]; /* the result first */
    enum sim_type types[TENSORS];
    struct sim_offsets offsets;
    const unsigned char *kept; /* numbers that the functor keeps */
};

static uint64_t bytes_of(const struct loop *loop, size_t tensor)
{
    return sim_offsets_last(&loop->offsets, loop->count, tensor) +
           sim_type_size(loop->types[tensor]);
}

/* Opens the tensors from `first` on. */
static bool open_windows(const struct loop *loop, size_t first, int device,
                         struct sim_window *windows)
{
    for (size_t t = first; t < loop->tensors; t++) {
        if (!sim_window_open(&windows[t], loop->data[t], bytes_of(loop, t), device, t == 0)) {
            return false;
        }
    }
    return true;
}

static void compute(const struct loop *loop, const struct sim_functor *functor,
                    struct sim_window *windows)
{
    struct sim_value inputs[SIM_FUNCTOR_INPUTS], result;

    for (uint64_t i = 0; i < loop->count; i++) {
        for (size_t t = 1; t < loop->tensors; t++) {
            inputs[t - 1] = sim_value_load(windows[t].bytes + sim_offsets_get(&loop->offsets, i, t),
                                           loop->types[t]);
            inputs[t - 1] = sim_value_cast(inputs[t - 1], functor->inputs[t - 1]);
        }
        result = sim_functor_apply(functor, loop->kept, inputs);
        sim_value_store(windows[0].bytes + sim_offsets_get(&loop->offsets, i, 0),
                        sim_value_cast(result, loop->types[0]));
    }
}

/* Fills a tensor without gaps with a constant. False if an element is larger than 4 bytes and the
 * constant is not 0. */
static bool fill(const struct loop *loop, const struct sim_functor *functor, int device)
{
    struct sim_value value = sim_functor_apply(functor, loop->kept, NULL);
    size_t width = sim_type_size(value.type), bytes = loop->count * width;
    unsigned char raw[sizeof(uint64_t)] = {0};
    uint32_t pattern;

    sim_value_store(raw, value);
    memcpy(&pattern, raw, sizeof(pattern));
    if (width > sizeof(pattern) && sim_read_u64(raw) != 0) {
        return false;
    }
    return sim_memory_fill(loop->data[0], pattern, width > sizeof(pattern) ? 4 : width, bytes,
                           device);
}

/* Sets the result to zeros. */
static void clear(const struct loop *loop, struct sim_window *result)
{
    for (uint64_t i = 0; i < loop->count; i++) {
        memset(result->bytes + sim_offsets_get(&loop->offsets, i, 0), 0,
               sim_type_size(loop->types[0]));
    }
}

static bool are_inputs_known(const struct loop *loop)
{
    for (size_t t = 1; t < loop->tensors; t++) {
        if (!sim_mem_is_known(loop->data[t], bytes_of(loop, t))) {
            return false;
        }
    }
    return true;
}

static enum sim_outcome_of_call run_loop(const struct loop *loop, const struct sim_functor *functor,
                                         int device)
{
    struct sim_window windows[TENSORS] = {{.bytes = NULL}};
    bool is_known, admitted, opened;

    if (loop->count == 0 || !sim_call_admits(loop->count, true)) {
        return SIM_LEFT;
    }
    is_known = are_inputs_known(loop);
    admitted = sim_call_admits(loop->count, is_known);
    opened =
        open_windows(loop, admitted ? 0 : loop->tensors, device, windows) &&
        (admitted || sim_window_open(&windows[0], loop->data[0], bytes_of(loop, 0), device, true));
    if (opened && admitted) {
        compute(loop, functor, windows);
    } else if (opened) {
        clear(loop, &windows[0]);
    }
    sim_window_note(&windows[0], loop->count * sim_type_size(loop->types[0]), is_known && admitted);
    sim_windows_close(windows, loop->tensors, opened);
    return !opened ? SIM_LEFT : admitted ? SIM_COMPUTED : SIM_CLEARED;
}

/* Reads the number of elements, and takes the types from the functor. */
static bool begin(const struct sim_computation *computation, const struct sim_call *call,
                  struct loop *ret_loop)
{
    const struct sim_functor *functor = &computation->functor;
    const unsigned char *count = sim_call_argument(call, 0, sizeof(uint32_t));

    memset(ret_loop, 0, sizeof(*ret_loop));
    if (count == NULL) {
        return false;
    }
    ret_loop->count = sim_read_u32(count);
    ret_loop->tensors = 1 + functor->input_count;
    ret_loop->types[0] = functor->result;
    for (size_t i = 0; i < functor->input_count; i++) {
        ret_loop->types[1 + i] = functor->inputs[i];
    }
    return true;
}

static void read_data(struct loop *loop, const unsigned char *data)
{
    for (size_t t = 0; t < loop->tensors; t++) {
        loop->data[t] = sim_read_u64(data + t * sizeof(CUdeviceptr));
    }
}

static void set_contiguous(struct loop *loop)
{
    size_t sizes[TENSORS];

    for (size_t t = 0; t < loop->tensors; t++) {
        sizes[t] = sim_type_size(loop->types[t]);
    }
    loop->offsets = sim_offsets_contiguous(loop->tensors, sizes);
}

/* Replaces the functor's types by the types in the arguments. */
static bool read_types(struct loop *loop, size_t first, const unsigned char *numbers, size_t count)
{
    for (size_t t = 0; t < count; t++) {
        loop->types[first + t] = sim_type_numbered(numbers[t]);
        if (loop->types[first + t] == SIM_TYPE_NONE) {
            return false;
        }
    }
    return true;
}

/* Reads the arguments of vectorized_elementwise_kernel<int, F, array>(int, F, array) and
 * unrolled_elementwise_kernel<F, array, int, ...>(int, F, array, offsets, offsets, load, store),
 * for tensors without gaps. */
static bool read_contiguous(const struct sim_computation *computation, const struct sim_call *call,
                            struct loop *ret_loop)
{
    size_t inputs = computation->functor.input_count;
    const unsigned char *data = sim_call_argument(call, 2, (1 + inputs) * sizeof(CUdeviceptr));

    if (!begin(computation, call, ret_loop) || data == NULL) {
        return false;
    }
    ret_loop->kept = sim_call_argument(call, 1, computation->functor.bytes);
    if (ret_loop->kept == NULL || !sim_functor_fits(&computation->functor, call->params[1].size)) {
        return false;
    }
    read_data(ret_loop, data);
    if (computation->casts) {
        const unsigned char *load = sim_call_argument(call, 5, inputs);
        const unsigned char *store = sim_call_argument(call, 6, 1);

        if (load == NULL || store == NULL || !read_types(ret_loop, 1, load, inputs) ||
            !read_types(ret_loop, 0, store, 1)) {
            return false;
        }
    }
    set_contiguous(ret_loop);
    return true;
}

static enum sim_outcome_of_call run_contiguous(const struct sim_computation *computation,
                                               const struct sim_call *call)
{
    struct loop loop;

    if (!read_contiguous(computation, call, &loop)) {
        return SIM_LEFT;
    }
    if (computation->functor.input_count == 0 && fill(&loop, &computation->functor, call->device)) {
        return SIM_COMPUTED;
    }
    return run_loop(&loop, &computation->functor, call->device);
}

/* The bytes of all tensors. A tensor that is broadcast counts once. */
static uint64_t loop_bytes(const struct loop *loop)
{
    uint64_t bytes = 0;

    for (size_t t = 0; t < loop->tensors; t++) {
        uint64_t elements = loop->count * sim_type_size(loop->types[t]);
        uint64_t extent = loop->count > 0 ? bytes_of(loop, t) : 0;

        bytes += extent < elements ? extent : elements;
    }
    return bytes;
}

static uint64_t contiguous_bytes(const struct sim_computation *computation,
                                 const struct sim_call *call, bool *ret_gaps)
{
    struct loop loop;

    *ret_gaps = false;
    return read_contiguous(computation, call, &loop) ? loop_bytes(&loop) : 0;
}

static size_t round_up(size_t size, size_t align)
{
    return (size + align - 1) / align * align;
}

/* The offset of the types in the lambda of gpu_kernel_impl. The types follow the functor. The
 * lambda has `size` bytes and ends with a pointer that the compiler adds. The functor may also end
 * with a pointer that the compiler adds. 0 if the offset is not found. */
static size_t find_types(const struct sim_functor *functor, size_t kept, size_t size)
{
    for (int has_pointer = 0; has_pointer <= functor->is_lambda; has_pointer++) {
        size_t types = kept + sim_functor_bytes(functor, has_pointer != 0);

        if (round_up(types + 1 + functor->input_count, sizeof(void *)) + sizeof(void *) == size) {
            return types;
        }
    }
    return 0;
}

/* elementwise_kernel<int, int, lambda>(int, lambda). The lambda of gpu_kernel_impl_nocast has the
 * offsets, the addresses and the functor. The lambda of gpu_kernel_impl also has the types. */
static bool read_strided_loop(const struct sim_computation *computation,
                              const struct sim_call *call, struct loop *ret_loop)
{
    const struct sim_functor *functor = &computation->functor;
    size_t tensors = 1 + functor->input_count;
    size_t data = round_up(sim_offsets_bytes(tensors), sizeof(CUdeviceptr));
    size_t kept = round_up(data + tensors * sizeof(CUdeviceptr), functor->align);
    const unsigned char *lambda = sim_call_argument(call, 1, kept + functor->bytes);
    size_t types =
        lambda != NULL && computation->casts ? find_types(functor, kept, call->params[1].size) : 0;

    if (lambda == NULL || (computation->casts && types == 0) ||
        !begin(computation, call, ret_loop) ||
        !sim_offsets_read(lambda, tensors, &ret_loop->offsets) ||
        (computation->casts && !read_types(ret_loop, 0, lambda + types, tensors))) {
        return false;
    }
    ret_loop->kept = lambda + kept;
    read_data(ret_loop, lambda + data);
    return true;
}

static enum sim_outcome_of_call run_strided(const struct sim_computation *computation,
                                            const struct sim_call *call)
{
    struct loop loop;

    return read_strided_loop(computation, call, &loop)
               ? run_loop(&loop, &computation->functor, call->device)
               : SIM_LEFT;
}

/* True if neighbouring elements of a tensor are neither the same element nor next to each other,
 * or if they are next to each other for less than a sector of memory. */
static bool has_gaps(const struct loop *loop)
{
    bool gaps = false;

    for (size_t t = 0; t < loop->tensors && loop->offsets.dimensions > 0; t++) {
        size_t width = sim_type_size(loop->types[t]);
        uint32_t stride = loop->offsets.strides[0][t];
        bool is_short =
            loop->offsets.dimensions > 1 && loop->offsets.sizes[0] * (uint64_t)width < SECTOR_BYTES;

        gaps |= stride != 0 && (stride != width || is_short);
    }
    return gaps;
}

static uint64_t strided_bytes(const struct sim_computation *computation,
                              const struct sim_call *call, bool *ret_gaps)
{
    struct loop loop;

    if (!read_strided_loop(computation, call, &loop)) {
        return 0;
    }
    *ret_gaps = has_gaps(&loop);
    return loop_bytes(&loop);
}

static bool read_vectorized(const struct sim_cxx_entity *kernel,
                            struct sim_computation *computation)
{
    /* PyTorch 2.15 has a fourth argument: the number of elements of a thread. */
    return (kernel->arguments.count == 3 || kernel->arguments.count == 4) &&
           sim_functor_read(kernel->arguments.items[1], &computation->functor);
}

/* The type of a result, from the number of its lambda in AT_DISPATCH_ALL_TYPES. */
static enum sim_type numbered_type(struct sim_cxx_text lambda)
{
    static const enum sim_type types[] = {SIM_TYPE_NONE, SIM_TYPE_U8,  SIM_TYPE_I8,  SIM_TYPE_I32,
                                          SIM_TYPE_I64,  SIM_TYPE_I16, SIM_TYPE_F64, SIM_TYPE_F32};
    static const char outer[] = "operator()() const::{lambda()#";
    const char *found = memmem(lambda.start, lambda.length, outer, strlen(outer));
    size_t number = found == NULL ? 0 : strtoul(found + strlen(outer), NULL, 10);

    return number < sizeof(types) / sizeof(types[0]) ? types[number] : SIM_TYPE_NONE;
}

/* elementwise_kernel_with_index<int, lambda>(int, lambda, result *). */
static bool read_arange(const struct sim_cxx_entity *kernel, struct sim_computation *computation)
{
    struct sim_cxx_entity lambda;

    if (kernel->arguments.count != 2 || !sim_cxx_read(kernel->arguments.items[1], &lambda) ||
        !sim_cxx_is(lambda.name, "arange_cuda_out")) {
        return false;
    }
    computation->output = numbered_type(kernel->arguments.items[1]);
    return computation->output != SIM_TYPE_NONE;
}

/* The lambda keeps the start and the step; integers have 64 bits. */
static enum sim_outcome_of_call run_arange(const struct sim_computation *computation,
                                           const struct sim_call *call)
{
    enum sim_type type = computation->output;
    enum sim_type kept = sim_type_is_float(type) ? type : SIM_TYPE_I64;
    const unsigned char *number = sim_call_argument(call, 0, sizeof(uint32_t));
    const unsigned char *lambda = sim_call_argument(call, 1, 2 * sim_type_size(kept));
    const unsigned char *result = sim_call_argument(call, 2, sizeof(CUdeviceptr));
    struct sim_window window;
    uint64_t count;

    if (number == NULL || lambda == NULL || result == NULL) {
        return SIM_LEFT;
    }
    count = sim_read_u32(number);
    if (!sim_call_admits(count, true) ||
        !sim_window_open(&window, sim_read_u64(result), count * sim_type_size(type), call->device,
                         true)) {
        return SIM_LEFT;
    }
    for (uint64_t i = 0; i < count; i++) {
        struct sim_value value = {.type = SIM_TYPE_I64, .i = (int64_t)i};

        value = sim_functor_combine(SIM_MULTIPLY,
                                    sim_value_load(lambda + sim_type_size(kept), kept), value);
        value = sim_functor_combine(SIM_ADD, sim_value_load(lambda, kept), value);
        sim_value_store(window.bytes + i * sim_type_size(type), sim_value_cast(value, type));
    }
    sim_window_note(&window, window.size, true);
    sim_window_close(&window);
    return SIM_COMPUTED;
}

static bool is_named(struct sim_cxx_text text, const char *name)
{
    struct sim_cxx_entity entity;

    return sim_cxx_read(text, &entity) && sim_cxx_is(entity.name, name);
}

static bool read_unrolled(const struct sim_cxx_entity *kernel, struct sim_computation *computation)
{
    const struct sim_cxx_text *arguments = kernel->arguments.items;

    if (kernel->arguments.count != 7 || !is_named(arguments[3], "TrivialOffsetCalculator") ||
        !is_named(arguments[4], "TrivialOffsetCalculator")) {
        return false;
    }
    computation->casts = is_named(arguments[5], "LoadWithCast");
    return is_named(arguments[6], computation->casts ? "StoreWithCast" : "StoreWithoutCast") &&
           sim_functor_read(arguments[0], &computation->functor);
}

static bool read_strided(const struct sim_cxx_entity *kernel, struct sim_computation *computation)
{
    struct sim_cxx_entity lambda;

    if (kernel->arguments.count != 3 || !sim_cxx_read(kernel->arguments.items[2], &lambda) ||
        lambda.arguments.count != 1) {
        return false;
    }
    computation->casts = sim_cxx_is(lambda.name, "gpu_kernel_impl");
    return (computation->casts || sim_cxx_is(lambda.name, "gpu_kernel_impl_nocast")) &&
           sim_functor_read(lambda.arguments.items[0], &computation->functor);
}

const struct sim_kernel_kind sim_elementwise_kinds[] = {
    {"vectorized_elementwise_kernel", read_vectorized, run_contiguous, contiguous_bytes},
    {"unrolled_elementwise_kernel", read_unrolled, run_contiguous, contiguous_bytes},
    {"elementwise_kernel", read_strided, run_strided, strided_bytes},
    {"elementwise_kernel_with_index", read_arange, run_arange, NULL},
    {NULL, NULL, NULL, NULL},
};
