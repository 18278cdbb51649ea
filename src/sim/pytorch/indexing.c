/* Kernels that read or write elements at given indices of other tensors
 * (ATen/native/cuda/IndexKernel.cu, ScatterGatherKernel.cu, Shape.cu, Nonzero.cu). */
#include <stdlib.h>
#include <string.h>

#include "sim/driver/memory/content.h"
#include "sim/pytorch/kind.h"
#include "sim/pytorch/strides.h"

static size_t round_up(size_t size, size_t align)
{
    return (size + align - 1) / align * align;
}

/* The size of OpaqueType<size>; 0 for another type. */
static size_t opaque_bytes(struct sim_cxx_text type)
{
    struct sim_cxx_entity entity;
    size_t bytes;

    if (!sim_cxx_read(type, &entity) || !sim_cxx_is(entity.name, "OpaqueType") ||
        entity.arguments.count != 1) {
        return 0;
    }
    bytes = (size_t)strtoul(entity.arguments.items[0].start, NULL, 10);
    return bytes <= 16 ? bytes : 0;
}

/* ---- index and index_put ---- */

enum { MAX_INDICES = SIM_OFFSET_DIMENSIONS };

/* The lambda of gpu_index_kernel, after the offsets of the result, the source and the indices. */
struct index_lambda {
    uint64_t result, source, count;
    uint64_t indices[MAX_INDICES];
    int64_t sizes[MAX_INDICES], strides[MAX_INDICES]; /* strides in bytes */
};

/* One launch. The indices are the places in the source from which elements are read or, with
 * `is_put`, the places in the result to which elements are written. `extent` is the size of the
 * indexed dimensions in bytes. */
struct index_run {
    struct index_lambda lambda;
    struct sim_offsets offsets;
    uint64_t elements, extent;
    size_t bytes; /* of an element */
    bool is_put;
    enum sim_type sum; /* type of elements if they are added; NONE: elements are replaced */
    struct sim_window result, source, indices[MAX_INDICES];
};

static bool read_index_lambda(const struct sim_call *call, struct index_run *run)
{
    size_t at = round_up(sim_offsets_bytes(3), sizeof(uint64_t));
    const unsigned char *count = sim_call_argument(call, 0, sizeof(uint64_t));
    const unsigned char *lambda = sim_call_argument(call, 1, at + sizeof(run->lambda));

    if (count == NULL || lambda == NULL || !sim_offsets_read(lambda, 3, &run->offsets)) {
        return false;
    }
    memcpy(&run->lambda, lambda + at, sizeof(run->lambda));
    run->elements = sim_read_u64(count);
    return run->lambda.count <= MAX_INDICES;
}

/* Sets `extent`. False if a size or a stride is invalid. */
static bool find_extent(struct index_run *run)
{
    uint64_t most = SIM_WINDOW_BYTES;

    run->extent = 0;
    for (size_t i = 0; i < run->lambda.count; i++) {
        int64_t size = run->lambda.sizes[i], stride = run->lambda.strides[i];

        if (size <= 0 || stride < 0 || (stride > 0 && (uint64_t)size > most / (uint64_t)stride)) {
            return false;
        }
        run->extent += (uint64_t)(size - 1) * (uint64_t)stride;
    }
    return true;
}

static bool open_index_windows(struct index_run *run, int device)
{
    uint64_t result = sim_offsets_last(&run->offsets, run->elements, 0) + run->bytes;
    uint64_t source = sim_offsets_last(&run->offsets, run->elements, 1) + run->bytes;
    uint64_t index = sim_offsets_last(&run->offsets, run->elements, 2) + sizeof(int64_t);

    result += run->is_put ? run->extent : 0;
    source += run->is_put ? 0 : run->extent;
    for (size_t i = 0; i < run->lambda.count; i++) {
        if (!sim_window_open(&run->indices[i], run->lambda.indices[i], index, device, false)) {
            return false;
        }
    }
    return sim_window_open(&run->result, run->lambda.result, result, device, true) &&
           sim_window_open(&run->source, run->lambda.source, source, device, false);
}

/* The offset that the indices of an element give. False if one of them is out of range. */
static bool indexed(const struct index_run *run, uint64_t element, uint64_t *ret_offset)
{
    uint64_t at = sim_offsets_get(&run->offsets, element, 2);

    *ret_offset = 0;
    for (size_t i = 0; i < run->lambda.count; i++) {
        int64_t size = run->lambda.sizes[i];
        int64_t index = (int64_t)sim_read_u64(run->indices[i].bytes + at);

        if (index < -size || index >= size) {
            return false;
        }
        index += index < 0 ? size : 0;
        *ret_offset += (uint64_t)index * (uint64_t)run->lambda.strides[i];
    }
    return true;
}

static void move_element(const struct index_run *run, unsigned char *to, const unsigned char *from)
{
    if (run->sum == SIM_TYPE_NONE) {
        memcpy(to, from, run->bytes);
        return;
    }
    sim_value_store(to, sim_functor_combine(SIM_ADD, sim_value_load(to, run->sum),
                                            sim_value_load(from, run->sum)));
}

static bool move_indexed(struct index_run *run)
{
    bool is_known = run->source.is_known;

    for (size_t i = 0; i < run->lambda.count; i++) {
        is_known &= run->indices[i].is_known;
    }
    if (!sim_call_admits(run->elements, is_known)) {
        return false;
    }
    for (uint64_t i = 0; i < run->elements; i++) {
        uint64_t to = sim_offsets_get(&run->offsets, i, 0);
        uint64_t from = sim_offsets_get(&run->offsets, i, 1);
        uint64_t offset;

        if (!indexed(run, i, &offset)) {
            return false;
        }
        move_element(run, run->result.bytes + to + (run->is_put ? offset : 0),
                     run->source.bytes + from + (run->is_put ? 0 : offset));
    }
    sim_window_note(&run->result, run->is_put ? 0 : run->elements * run->bytes, is_known);
    return true;
}

static enum sim_outcome_of_call run_indices(struct index_run *run,
                                            const struct sim_computation *computation, int device)
{
    bool done;

    run->bytes = computation->element_bytes;
    run->is_put = computation->way != 0;
    run->sum = computation->input;
    if (run->elements == 0 || !sim_call_admits(run->elements, true) || !find_extent(run)) {
        return SIM_LEFT;
    }
    done = open_index_windows(run, device) && move_indexed(run);
    sim_windows_close(&run->result, 1, done);
    sim_windows_close(&run->source, 1, done);
    sim_windows_close(run->indices, run->lambda.count, done);
    return done ? SIM_COMPUTED : SIM_LEFT;
}

/* index_elementwise_kernel<int, int, lambda>(long, lambda). */
static enum sim_outcome_of_call run_index(const struct sim_computation *computation,
                                          const struct sim_call *call)
{
    struct index_run *run = calloc(1, sizeof(*run));
    enum sim_outcome_of_call outcome = SIM_LEFT;

    if (run != NULL && read_index_lambda(call, run)) {
        outcome = run_indices(run, computation, call->device);
    }
    free(run);
    return outcome;
}

static bool read_index(const struct sim_cxx_entity *kernel, struct sim_computation *computation)
{
    struct sim_cxx_entity lambda, move;

    if (kernel->arguments.count != 3 || !sim_cxx_read(kernel->arguments.items[2], &lambda) ||
        !sim_cxx_is(lambda.name, "gpu_index_kernel") || lambda.arguments.count != 1 ||
        !sim_cxx_read(lambda.arguments.items[0], &move) || move.arguments.count != 1) {
        return false;
    }
    computation->way = sim_cxx_is(move.name, "index_put_kernel_impl");
    computation->element_bytes = opaque_bytes(move.arguments.items[0]);
    return computation->element_bytes > 0 &&
           (computation->way != 0 || sim_cxx_is(move.name, "index_kernel_impl"));
}

/* ---- rows ---- */

/* vectorized_gather_kernel<int, long>(result, source, indices, count, bytes of a row, rows of the
 * source, stride of the source's rows, stride of the result's rows, whether indices may be
 * negative). */
struct rows {
    CUdeviceptr result, source, indices;
    uint64_t count;
    int64_t bytes, most, from_stride, to_stride;
};

static bool read_rows(const struct sim_call *call, struct rows *ret_rows)
{
    uint64_t words[8];

    for (size_t i = 0; i < 8; i++) {
        const unsigned char *argument =
            sim_call_argument(call, i, i == 3 ? sizeof(uint32_t) : sizeof(uint64_t));

        if (argument == NULL) {
            return false;
        }
        words[i] = i == 3 ? sim_read_u32(argument) : sim_read_u64(argument);
    }
    *ret_rows =
        (struct rows){words[0],          words[1],          words[2],          words[3],
                      (int64_t)words[4], (int64_t)words[5], (int64_t)words[6], (int64_t)words[7]};
    return ret_rows->count > 0 && sim_call_admits(ret_rows->count, true) && ret_rows->bytes > 0 &&
           ret_rows->most > 0 && ret_rows->from_stride >= 0 &&
           ret_rows->to_stride >= ret_rows->bytes &&
           (uint64_t)ret_rows->bytes <= SIM_WINDOW_BYTES &&
           (uint64_t)ret_rows->to_stride <= SIM_WINDOW_BYTES &&
           (uint64_t)ret_rows->from_stride <= SIM_WINDOW_BYTES / (uint64_t)ret_rows->most;
}

static bool move_rows(const struct rows *rows, struct sim_window *result,
                      const struct sim_window *source, const struct sim_window *indices)
{
    for (uint64_t i = 0; i < rows->count; i++) {
        int64_t index = (int64_t)sim_read_u64(indices->bytes + i * sizeof(index));

        index += index < 0 ? rows->most : 0;
        if (index < 0 || index >= rows->most) {
            return false;
        }
        memcpy(result->bytes + i * (uint64_t)rows->to_stride,
               source->bytes + (uint64_t)index * (uint64_t)rows->from_stride, (size_t)rows->bytes);
    }
    sim_window_note(result, rows->count * (uint64_t)rows->bytes,
                    source->is_known && indices->is_known);
    return true;
}

static enum sim_outcome_of_call run_rows(const struct sim_computation *computation,
                                         const struct sim_call *call)
{
    enum { RESULT, SOURCE, INDICES, WINDOWS };
    struct sim_window windows[WINDOWS] = {{.bytes = NULL}};
    struct rows rows;
    uint64_t last;
    bool done;

    if (!read_rows(call, &rows)) {
        return SIM_LEFT;
    }
    last = (rows.count - 1) * (uint64_t)rows.to_stride;
    done = sim_window_open(&windows[INDICES], rows.indices, rows.count * sizeof(int64_t),
                           call->device, false) &&
           sim_window_open(&windows[SOURCE], rows.source,
                           (uint64_t)(rows.most - 1) * (uint64_t)rows.from_stride +
                               (uint64_t)rows.bytes,
                           call->device, false) &&
           sim_window_open(&windows[RESULT], rows.result, last + (uint64_t)rows.bytes, call->device,
                           true) &&
           move_rows(&rows, &windows[RESULT], &windows[SOURCE], &windows[INDICES]);
    sim_windows_close(windows, WINDOWS, done);
    return done ? SIM_COMPUTED : SIM_LEFT;
}

static bool read_rows_kernel(const struct sim_cxx_entity *kernel,
                             struct sim_computation *computation)
{
    return kernel->arguments.count == 2 && sim_cxx_is(kernel->arguments.items[1], "long");
}

/* ---- gather and scatter ---- */

/* The lambda of _cuda_scatter_gather_internal_kernel, after its offsets. */
struct gather_lambda {
    uint64_t indices;
    int64_t size; /* of the indexed dimension */
    uint64_t functor, result;
    int64_t stride; /* of the indexed dimension, in elements */
    uint64_t elements, source;
};

/* _scatter_gather_elementwise_kernel<int, int, lambda>(int, lambda). Each element has one index:
 * its place in the source or, for a scatter, in the result. */
static enum sim_outcome_of_call run_gather(const struct sim_computation *computation,
                                           const struct sim_call *call)
{
    size_t at = round_up(sim_offsets_bytes(3), sizeof(uint64_t));
    const unsigned char *count = sim_call_argument(call, 0, sizeof(uint32_t));
    const unsigned char *argument = sim_call_argument(call, 1, at + sizeof(struct gather_lambda));
    struct gather_lambda lambda;
    struct index_run *run;
    enum sim_outcome_of_call outcome = SIM_LEFT;

    if (count == NULL || argument == NULL) {
        return SIM_LEFT;
    }
    run = calloc(1, sizeof(*run));
    if (run != NULL && sim_offsets_read(argument, 3, &run->offsets)) {
        memcpy(&lambda, argument + at, sizeof(lambda));
        run->lambda = (struct index_lambda){
            .result = lambda.result,
            .source = lambda.source,
            .count = 1,
            .indices = {lambda.indices},
            .sizes = {lambda.size},
            .strides = {(int64_t)((uint64_t)lambda.stride * computation->element_bytes)}};
        run->elements = sim_read_u32(count);
        outcome = run_indices(run, computation, call->device);
    }
    free(run);
    return outcome;
}

/* The lambda of _cuda_scatter_fill_internal_kernel, after its offsets; the value follows. */
struct fill_lambda {
    uint64_t indices;
    int64_t size; /* of the indexed dimension */
    uint64_t functor, result;
    int64_t stride; /* of the indexed dimension, in elements */
    uint64_t elements;
};

static bool fill_indexed(struct index_run *run, const unsigned char *value)
{
    const struct sim_window *indices = &run->indices[0];

    for (uint64_t i = 0; i < run->elements; i++) {
        int64_t index =
            (int64_t)sim_read_u64(indices->bytes + sim_offsets_get(&run->offsets, i, 1));

        if (index < 0 || index >= run->lambda.sizes[0]) {
            return false;
        }
        memcpy(run->result.bytes + sim_offsets_get(&run->offsets, i, 0) +
                   (uint64_t)index * (uint64_t)run->lambda.strides[0],
               value, run->bytes);
    }
    sim_window_note(&run->result, 0, indices->is_known);
    return sim_call_admits(run->elements, indices->is_known);
}

/* Like run_gather(), but scatters one value to all places. */
static enum sim_outcome_of_call run_fill(const struct sim_computation *computation,
                                         const struct sim_call *call)
{
    size_t at = round_up(sim_offsets_bytes(2), sizeof(uint64_t));
    size_t value = at + sizeof(struct fill_lambda);
    const unsigned char *count = sim_call_argument(call, 0, sizeof(uint32_t));
    const unsigned char *argument = sim_call_argument(call, 1, value + computation->element_bytes);
    struct fill_lambda lambda;
    struct index_run *run;
    bool done = false;

    if (count == NULL || argument == NULL) {
        return SIM_LEFT;
    }
    run = calloc(1, sizeof(*run));
    if (run != NULL && sim_offsets_read(argument, 2, &run->offsets)) {
        memcpy(&lambda, argument + at, sizeof(lambda));
        run->bytes = computation->element_bytes;
        run->elements = sim_read_u32(count);
        run->lambda =
            (struct index_lambda){.count = 1,
                                  .sizes = {lambda.size},
                                  .strides = {(int64_t)((uint64_t)lambda.stride * run->bytes)}};
        done = run->elements > 0 && sim_call_admits(run->elements, true) && find_extent(run) &&
               sim_window_open(&run->indices[0], lambda.indices,
                               sim_offsets_last(&run->offsets, run->elements, 1) + sizeof(int64_t),
                               call->device, false) &&
               sim_window_open(&run->result, lambda.result,
                               sim_offsets_last(&run->offsets, run->elements, 0) + run->extent +
                                   run->bytes,
                               call->device, true) &&
               fill_indexed(run, argument + value);
        sim_windows_close(&run->result, 1, done);
        sim_windows_close(run->indices, 1, done);
    }
    free(run);
    return done ? SIM_COMPUTED : SIM_LEFT;
}

static bool has(struct sim_cxx_text text, const char *part)
{
    return memmem(text.start, text.length, part, strlen(part)) != NULL;
}

static enum sim_outcome_of_call run_gather_or_fill(const struct sim_computation *computation,
                                                   const struct sim_call *call)
{
    return computation->unit != 0 ? run_fill(computation, call) : run_gather(computation, call);
}

/* Template arguments: <whether it scatters, type, index> if elements are moved or added, <type,
 * index> if one value is scattered. */
static bool read_gather(const struct sim_cxx_entity *kernel, struct sim_computation *computation)
{
    struct sim_cxx_text text =
        kernel->arguments.count == 3 ? kernel->arguments.items[2] : (struct sim_cxx_text){"", 0};
    bool assigns = has(text, "operator()<at::native::TensorAssign>");
    struct sim_cxx_entity lambda;
    const struct sim_cxx_list *types = &lambda.arguments;

    if (!sim_cxx_read(text, &lambda) || types->count < 2 ||
        !sim_cxx_is(types->items[types->count - 1], "long")) {
        return false;
    }
    computation->unit = sim_cxx_is(lambda.name, "_cuda_scatter_fill_internal_kernel");
    computation->way = sim_cxx_is(types->items[0], "true");
    computation->element_bytes = opaque_bytes(types->items[types->count - 2]);
    if (computation->unit == 0 &&
        !sim_cxx_is(lambda.name, "_cuda_scatter_gather_internal_kernel")) {
        return false;
    }
    if (!assigns && computation->unit == 0 && computation->way != 0 &&
        has(text, "operator()<at::native::ReduceAdd>")) {
        computation->input = sim_type_named(types->items[types->count - 2]);
        computation->element_bytes = sim_type_size(computation->input);
        return computation->element_bytes > 0;
    }
    return assigns && computation->element_bytes > 0;
}

/* ---- cat ---- */

enum { CAT_DIMENSIONS = 4 };

/* PyTorch's TensorSizeStride. */
struct shape {
    uint32_t sizes[CAT_DIMENSIONS], strides[CAT_DIMENSIONS];
};

/* CatArrInputTensorMetadata<type, unsigned int, most, shapes>: for each input, the address, the
 * offset and the size in the dimension of the concatenation, the number of elements, a flag (set if
 * there are no gaps), and the shape. The vectorized kernel counts in units of several elements. It
 * merges the dimension of the concatenation with the later dimensions, which have `trailing`
 * elements. */
struct cat {
    const unsigned char *metadata;
    size_t most;        /* capacity for tensors */
    size_t shape_count; /* capacity for shapes */
    size_t unit;        /* elements in a unit */
    size_t bytes;       /* of a unit */
    size_t dimensions, dimension;
    uint32_t trailing;
    struct shape shape; /* of the result */
    struct sim_window result;
    bool is_known; /* all inputs so far are known */
};

enum cat_array { CAT_OFFSETS, CAT_SIZES, CAT_ELEMENTS, CAT_ARRAYS };

static uint64_t cat_units(const struct cat *cat, enum cat_array array, size_t input)
{
    uint64_t elements = sim_read_u32(cat->metadata + cat->most * sizeof(CUdeviceptr) +
                                     ((size_t)array * cat->most + input) * sizeof(uint32_t));

    return elements * (array == CAT_ELEMENTS ? 1 : cat->trailing) / cat->unit;
}

static size_t cat_metadata_bytes(const struct cat *cat)
{
    return cat->most * (sizeof(CUdeviceptr) + CAT_ARRAYS * sizeof(uint32_t) + 1) +
           cat->shape_count * sizeof(struct shape);
}

/* The shape of an input with gaps; false for one without gaps. */
static bool has_gaps(const struct cat *cat, size_t input, struct shape *ret_shape)
{
    size_t flags = cat->most * (sizeof(CUdeviceptr) + CAT_ARRAYS * sizeof(uint32_t));

    if (cat->metadata[flags + input] != 0 || input >= cat->shape_count) {
        return false;
    }
    memcpy(ret_shape, cat->metadata + flags + cat->most + input * sizeof(*ret_shape),
           sizeof(*ret_shape));
    return true;
}

/* The offset of a unit in a tensor of this shape, in units. `size`: the tensor's size in the
 * dimension of the concatenation. */
static uint64_t unit_offset(const struct cat *cat, const struct shape *shape, uint64_t size,
                            uint64_t unit)
{
    uint64_t offset = 0;

    for (size_t d = cat->dimensions; d-- > 1;) {
        uint64_t of = d == cat->dimension ? size : shape->sizes[d];

        if (of == 0) {
            return 0;
        }
        offset += unit % of * shape->strides[d];
        unit /= of;
    }
    return offset + unit * shape->strides[0];
}

static uint64_t last_offset(const struct cat *cat, const struct shape *shape)
{
    uint64_t last = 0;

    for (size_t d = 0; d < cat->dimensions; d++) {
        last += (uint64_t)(shape->sizes[d] - (shape->sizes[d] > 0)) * shape->strides[d];
    }
    return last;
}

static bool cat_input(struct cat *cat, size_t input, int device)
{
    uint64_t units = cat_units(cat, CAT_ELEMENTS, input), size = cat_units(cat, CAT_SIZES, input);
    uint64_t first = cat_units(cat, CAT_OFFSETS, input) * cat->shape.strides[cat->dimension];
    struct sim_window source;
    struct shape shape;
    bool gaps = has_gaps(cat, input, &shape);
    uint64_t last = gaps ? last_offset(cat, &shape) : units - 1;

    if (units == 0) {
        return true;
    }
    if (!sim_call_admits(units, true) || last >= SIM_WINDOW_BYTES ||
        !sim_window_open(&source, sim_read_u64(cat->metadata + input * sizeof(CUdeviceptr)),
                         (last + 1) * cat->bytes, device, false)) {
        return false;
    }
    for (uint64_t i = 0; i < units; i++) {
        uint64_t at = first + unit_offset(cat, &cat->shape, size, i);
        uint64_t from = gaps ? unit_offset(cat, &shape, size, i) : i;
        unsigned char *to =
            sim_window_at(&cat->result, cat->result.first + at * cat->bytes, cat->bytes);

        if (to != NULL && from <= last) {
            memcpy(to, source.bytes + from * cat->bytes, cat->bytes);
        }
    }
    cat->is_known &= source.is_known;
    sim_window_close(&source);
    return true;
}

static bool open_cat_result(struct cat *cat, const struct sim_call *call)
{
    const unsigned char *result = sim_call_argument(call, 0, sizeof(CUdeviceptr));
    uint64_t units = last_offset(cat, &cat->shape) + 1;

    return result != NULL && sim_call_admits(units, true) &&
           sim_window_open(&cat->result, sim_read_u64(result), units * cat->bytes, call->device,
                           true);
}

/* CatArrayBatchedCopy...(result, metadata, shape, dimension, stride or trailing): a row of the
 * grid's blocks copies each input. */
static enum sim_outcome_of_call run_cat(const struct sim_computation *computation,
                                        const struct sim_call *call)
{
    struct cat cat = {.most = computation->batch,
                      .shape_count = computation->shapes,
                      .unit = computation->unit,
                      .bytes = computation->element_bytes * computation->unit,
                      .dimensions = (size_t)computation->way,
                      .trailing = 1,
                      .is_known = true};
    const unsigned char *shape = sim_call_argument(call, 2, sizeof(cat.shape));
    const unsigned char *dimension = sim_call_argument(call, 3, sizeof(uint32_t));
    const unsigned char *trailing = sim_call_argument(call, 4, sizeof(uint32_t));
    bool done = true;

    cat.metadata = sim_call_argument(call, 1, cat_metadata_bytes(&cat));
    if (cat.metadata == NULL || shape == NULL || dimension == NULL || trailing == NULL ||
        call->rows > cat.most) {
        return SIM_LEFT;
    }
    memcpy(&cat.shape, shape, sizeof(cat.shape));
    cat.dimension = sim_read_u32(dimension);
    cat.trailing = computation->unit > 1 ? sim_read_u32(trailing) : 1;
    if (cat.dimension >= cat.dimensions || !open_cat_result(&cat, call)) {
        return SIM_LEFT;
    }
    for (size_t i = 0; i < call->rows && done; i++) {
        done = cat_input(&cat, i, call->device);
    }
    done &= sim_call_admits(cat.result.size / computation->element_bytes, cat.is_known);
    sim_window_note(&cat.result, cat.result.size, cat.is_known);
    sim_windows_close(&cat.result, 1, done);
    return done ? SIM_COMPUTED : SIM_LEFT;
}

static size_t number(struct sim_cxx_text text)
{
    return (size_t)strtoul(text.start, NULL, 10);
}

/* Template arguments: <type, unsigned int, dimensions, tensors, shapes, alignment, elements in a
 * unit>; the last two may be missing. */
static bool read_cat(const struct sim_cxx_entity *kernel, struct sim_computation *computation)
{
    const struct sim_cxx_text *arguments = kernel->arguments.items;
    bool vectorized = sim_cxx_is(kernel->name, "CatArrayBatchedCopy_vectorized");

    if (kernel->arguments.count < (vectorized ? 7 : 5) ||
        !sim_cxx_is(arguments[1], "unsigned int")) {
        return false;
    }
    computation->element_bytes = opaque_bytes(arguments[0]);
    computation->way = (int)number(arguments[2]);
    computation->batch = number(arguments[3]);
    computation->shapes = number(arguments[4]);
    computation->unit = vectorized ? number(arguments[6]) : 1;
    return computation->element_bytes > 0 && computation->way >= 1 &&
           computation->way <= CAT_DIMENSIONS && computation->batch <= 1024 &&
           computation->shapes <= computation->batch && computation->unit >= 1 &&
           computation->unit <= 16;
}

/* ---- nonzero of several dimensions ---- */

enum { NONZERO_DIMENSIONS = 16 };

/* write_indices<long>(indices, sizes, dimensions, count, ...): replaces each linear index in a
 * tensor without gaps by its indices in all dimensions, which are in one row per dimension. */
static enum sim_outcome_of_call run_write_indices(const struct sim_computation *computation,
                                                  const struct sim_call *call)
{
    const unsigned char *data = sim_call_argument(call, 0, sizeof(CUdeviceptr));
    const unsigned char *sizes = sim_call_argument(call, 1, NONZERO_DIMENSIONS * sizeof(int64_t));
    const unsigned char *dimensions = sim_call_argument(call, 2, sizeof(uint32_t));
    const unsigned char *number = sim_call_argument(call, 3, sizeof(int64_t));
    struct sim_window window;
    uint64_t count, rows;
    bool is_known;

    if (data == NULL || sizes == NULL || dimensions == NULL || number == NULL) {
        return SIM_LEFT;
    }
    count = sim_read_u64(number);
    rows = sim_read_u32(dimensions);
    if (!sim_call_admits(count, true) || rows > NONZERO_DIMENSIONS ||
        !sim_window_open(&window, sim_read_u64(data), count * rows * sizeof(int64_t), call->device,
                         true)) {
        return SIM_LEFT;
    }
    is_known = sim_mem_is_known(window.first, count * sizeof(int64_t));
    for (uint64_t i = 0; i < count; i++) {
        uint64_t linear = sim_read_u64(window.bytes + i * sizeof(int64_t));

        for (uint64_t d = rows; d-- > 0;) {
            uint64_t size = sim_read_u64(sizes + d * sizeof(int64_t));
            uint64_t index = size == 0 ? 0 : linear % size;

            memcpy(window.bytes + (i + d * count) * sizeof(index), &index, sizeof(index));
            linear = size == 0 ? 0 : linear / size;
        }
    }
    sim_window_note(&window, window.size, is_known);
    sim_window_close(&window);
    return SIM_COMPUTED;
}

static bool read_write_indices(const struct sim_cxx_entity *kernel,
                               struct sim_computation *computation)
{
    return kernel->arguments.count == 1 && sim_cxx_is(kernel->arguments.items[0], "long");
}

const struct sim_kernel_kind sim_indexing_kinds[] = {
    {"index_elementwise_kernel", read_index, run_index, NULL},
    {"vectorized_gather_kernel", read_rows_kernel, run_rows, NULL},
    {"_scatter_gather_elementwise_kernel", read_gather, run_gather_or_fill, NULL},
    {"CatArrayBatchedCopy", read_cat, run_cat, NULL},
    {"CatArrayBatchedCopy_contig", read_cat, run_cat, NULL},
    {"CatArrayBatchedCopy_vectorized", read_cat, run_cat, NULL},
    {"CatArrayBatchedCopy_alignedK_contig", read_cat, run_cat, NULL},
    {"write_indices", read_write_indices, run_write_indices, NULL},
    {NULL, NULL, NULL, NULL},
};
