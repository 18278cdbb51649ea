/* Kernels on whole tensors: running sums of rows, triangles, selected slices, counts, searches
 * (ATen/native/cuda/ScanUtils.cuh, TriangularOps.cu, TensorTransformations.cu, Indexing.cu,
 * SummaryOps.cu, Bucketization.cu, Repeat.cu, UniqueCub.cu). */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/pytorch/kind.h"
#include "sim/pytorch/strides.h"

enum { MOST_ARRAYS = 4 };

/* Arrays that a kernel's arguments point to. */
struct arrays {
    struct sim_window windows[MOST_ARRAYS];
    size_t count;
};

/* Reads `count` arguments that are numbers, beginning with argument `first`. */
static bool read_numbers(const struct sim_call *call, size_t first, size_t count,
                         uint64_t *ret_numbers)
{
    bool done = true;

    for (size_t i = 0; done && i < count; i++) {
        done = sim_call_number(call, first + i, &ret_numbers[i]);
    }
    return done;
}

/* Opens the array that an argument points to. */
static bool open_array(struct arrays *arrays, const struct sim_call *call, size_t argument,
                       uint64_t elements, size_t bytes, bool is_written)
{
    return sim_call_admits(elements, true) && bytes > 0 &&
           sim_call_window(call, argument, elements * bytes, is_written,
                           &arrays->windows[arrays->count++]);
}

static bool open_tensor(struct arrays *arrays, const struct sim_info *info, size_t bytes,
                        const struct sim_call *call, bool is_written)
{
    return sim_window_open(&arrays->windows[arrays->count++], info->data,
                           (sim_info_last(info) + 1) * bytes, call->device, is_written);
}

/* Closes all arrays. The results are known if all inputs are known. */
static enum sim_outcome_of_call finish(struct arrays *arrays, bool done)
{
    bool is_known = true;

    for (size_t i = 0; i < arrays->count; i++) {
        is_known &= arrays->windows[i].is_written || arrays->windows[i].is_known;
    }
    for (size_t i = 0; i < arrays->count; i++) {
        if (arrays->windows[i].is_written) {
            sim_window_note(&arrays->windows[i], arrays->windows[i].size, is_known);
        }
    }
    sim_windows_close(arrays->windows, arrays->count, done);
    return done ? SIM_COMPUTED : SIM_LEFT;
}

/* Like finish(), for a launch that has written only `bytes` of the first array, the result. If it
 * has not written all of the result, the result is known only if it was known before. */
static enum sim_outcome_of_call finish_partly(struct arrays *arrays, bool done, uint64_t bytes)
{
    bool all = arrays->windows[0].is_known || bytes >= arrays->windows[0].size;
    enum sim_outcome_of_call outcome;

    if (!all) {
        for (size_t i = 1; i < arrays->count; i++) {
            arrays->windows[i].is_known = false;
        }
    }
    outcome = finish(arrays, done);
    return outcome;
}

/* ---- running sums of rows ---- */

/* tensor_kernel_scan_innermost_dim(result, source, rows, length, ...) and
 * tensor_kernel_scan_outer_dim(result, source, outer, inner, length, ...). */
static enum sim_outcome_of_call run_scan(const struct sim_computation *computation,
                                         const struct sim_call *call)
{
    enum sim_type type = computation->input;
    size_t size = sim_type_size(type);
    enum sim_operation operation = computation->functor.operation;
    struct arrays arrays = {.count = 0};
    uint64_t numbers[3], outer, inner, length;
    bool done;

    if (!read_numbers(call, 2, 3, numbers)) {
        return SIM_LEFT;
    }
    outer = numbers[0];
    inner = computation->way == 0 ? 1 : numbers[1];
    length = computation->way == 0 ? numbers[1] : numbers[2];
    done = sim_call_admits(outer, true) && sim_call_admits(inner, true) &&
           sim_call_admits(outer * inner, true) && sim_call_admits(length, true) &&
           open_array(&arrays, call, 0, outer * inner * length, size, true) &&
           open_array(&arrays, call, 1, outer * inner * length, size, false) &&
           sim_call_admits(outer * inner * length, arrays.windows[1].is_known);
    for (uint64_t row = 0; done && row < outer * inner; row++) {
        uint64_t at = row / inner * inner * length + row % inner;
        struct sim_value sum = sim_value_load(arrays.windows[1].bytes + at * size, type);

        for (uint64_t i = 0; i < length; i++, at += inner) {
            struct sim_value value = sim_value_load(arrays.windows[1].bytes + at * size, type);

            sum = i == 0 ? value : sim_functor_combine(operation, sum, value);
            sim_value_store(arrays.windows[0].bytes + at * size, sum);
        }
    }
    return finish(&arrays, done);
}

/* Template arguments: <type, ..., operation> */
static bool read_scan(const struct sim_cxx_entity *kernel, struct sim_computation *computation)
{
    struct sim_cxx_entity operation;
    size_t count = kernel->arguments.count;

    if (count < 2 || !sim_cxx_read(kernel->arguments.items[count - 1], &operation)) {
        return false;
    }
    computation->input = sim_type_named(kernel->arguments.items[0]);
    computation->way = sim_cxx_is(kernel->name, "tensor_kernel_scan_outer_dim");
    computation->functor.operation =
        sim_cxx_is(operation.name, "multiplies") ? SIM_MULTIPLY : SIM_ADD;
    return computation->input != SIM_TYPE_NONE &&
           (computation->functor.operation == SIM_MULTIPLY || sim_cxx_is(operation.name, "plus"));
}

/* ---- triangles ---- */

/* triu_tril_kernel(result, source, diagonal, ...): copies one triangle, sets other elements to 0.
 */
static enum sim_outcome_of_call run_triangle(const struct sim_computation *computation,
                                             const struct sim_call *call)
{
    size_t size = computation->element_bytes;
    const unsigned char *diagonal = sim_call_argument(call, 2, sizeof(int64_t));
    struct arrays arrays = {.count = 0};
    struct sim_info result, source;
    uint64_t count = 0, columns, rows;
    bool done;

    done = diagonal != NULL && sim_info_read(call, 0, &result) && sim_info_read(call, 1, &source) &&
           result.dimensions >= 2 && source.dimensions == result.dimensions &&
           memcmp(result.sizes, source.sizes, result.dimensions * sizeof(result.sizes[0])) == 0 &&
           open_tensor(&arrays, &result, size, call, true) &&
           open_tensor(&arrays, &source, size, call, false) &&
           sim_call_admits(count = sim_info_count(&result), arrays.windows[1].is_known);
    for (uint64_t i = 0; done && i < count; i++) {
        int64_t offset;
        unsigned char *to = arrays.windows[0].bytes + sim_info_get(&result, i) * size;

        columns = result.sizes[result.dimensions - 1];
        rows = result.sizes[result.dimensions - 2];
        offset = (int64_t)(i % columns) - (int64_t)(i / columns % rows);
        if (computation->way != 0 ? offset >= (int64_t)sim_read_u64(diagonal)
                                  : offset <= (int64_t)sim_read_u64(diagonal)) {
            memcpy(to, arrays.windows[1].bytes + sim_info_get(&source, i) * size, size);
        } else {
            memset(to, 0, size);
        }
    }
    return finish_partly(&arrays, done, count * size);
}

/* Template arguments: <type, int, whether the upper triangle, ...> */
static bool read_triangle(const struct sim_cxx_entity *kernel, struct sim_computation *computation)
{
    if (kernel->arguments.count < 3 || !sim_cxx_is(kernel->arguments.items[1], "int")) {
        return false;
    }
    computation->element_bytes = sim_type_size(sim_type_named(kernel->arguments.items[0]));
    computation->way = sim_cxx_is(kernel->arguments.items[2], "true");
    return computation->element_bytes > 0;
}

/* ---- shifts ---- */

/* roll_cuda_kernel(source, result, count, dimension, first, length, stride, ...). */
static enum sim_outcome_of_call run_roll(const struct sim_computation *computation,
                                         const struct sim_call *call)
{
    enum { COUNT, DIMENSION, FIRST, LENGTH, STRIDE, NUMBERS };
    size_t size = computation->element_bytes;
    struct arrays arrays = {.count = 0};
    uint64_t n[NUMBERS];
    bool done = read_numbers(call, 2, NUMBERS, n) && n[LENGTH] > 0 && n[STRIDE] > 0 &&
                sim_call_admits(n[COUNT], true) && sim_call_admits(n[LENGTH], true) &&
                sim_call_admits(n[STRIDE], true) && n[FIRST] <= n[LENGTH] &&
                n[COUNT] % (n[LENGTH] * n[STRIDE]) == 0 &&
                open_array(&arrays, call, 1, n[COUNT], size, true) &&
                open_array(&arrays, call, 0, n[COUNT], size, false) &&
                sim_call_admits(n[COUNT], arrays.windows[1].is_known);

    for (uint64_t i = 0; done && i < n[COUNT]; i++) {
        uint64_t place = i / n[STRIDE] % n[LENGTH];
        uint64_t from = i - place * n[STRIDE] + (place + n[FIRST]) % n[LENGTH] * n[STRIDE];

        memcpy(arrays.windows[0].bytes + i * size, arrays.windows[1].bytes + from * size, size);
    }
    return finish(&arrays, done);
}

static bool read_element(const struct sim_cxx_entity *kernel, struct sim_computation *computation)
{
    computation->input =
        kernel->arguments.count == 0 ? SIM_TYPE_NONE : sim_type_named(kernel->arguments.items[0]);
    computation->element_bytes = sim_type_size(computation->input);
    return computation->element_bytes > 0;
}

/* ---- slices by their numbers ---- */

/* One launch of indexSelectSmallIndex(result, source, indices, dimension of the result, dimension
 * of the source, ...) or indexSelectLargeIndex. Both tensors have size 1 in these dimensions. */
struct selection {
    struct sim_info result, source, indices;
    uint64_t to_step, from_step, most, slices, elements;
};

static bool read_selection(const struct sim_computation *computation, const struct sim_call *call,
                           struct selection *ret_selection)
{
    uint64_t dimensions[2], most;

    if (!sim_info_read(call, 0, &ret_selection->result) ||
        !sim_info_read(call, 1, &ret_selection->source) ||
        !sim_info_read(call, 2, &ret_selection->indices) || !read_numbers(call, 3, 2, dimensions) ||
        !sim_call_number(call, computation->way == 0 ? 6 : 7, &most) ||
        dimensions[0] >= ret_selection->result.dimensions ||
        dimensions[1] >= ret_selection->source.dimensions) {
        return false;
    }
    ret_selection->to_step = ret_selection->result.strides[dimensions[0]];
    ret_selection->from_step = ret_selection->source.strides[dimensions[1]];
    ret_selection->most = most;
    ret_selection->slices = sim_info_count(&ret_selection->indices);
    ret_selection->elements = sim_info_count(&ret_selection->result);
    return most > 0 && ret_selection->elements == sim_info_count(&ret_selection->source) &&
           sim_call_admits(most, true) && sim_call_admits(ret_selection->slices, true) &&
           sim_call_admits(ret_selection->slices * ret_selection->elements, true) &&
           ret_selection->to_step <= SIM_WINDOW_BYTES &&
           ret_selection->from_step <= SIM_WINDOW_BYTES;
}

static bool move_slices(const struct selection *s, const struct arrays *arrays, size_t size)
{
    for (uint64_t slice = 0; slice < s->slices; slice++) {
        uint64_t index = sim_read_u64(arrays->windows[2].bytes +
                                      sim_info_get(&s->indices, slice) * sizeof(int64_t));

        if (index >= s->most) {
            return false;
        }
        for (uint64_t i = 0; i < s->elements; i++) {
            memcpy(arrays->windows[0].bytes +
                       (sim_info_get(&s->result, i) + slice * s->to_step) * size,
                   arrays->windows[1].bytes +
                       (sim_info_get(&s->source, i) + index * s->from_step) * size,
                   size);
        }
    }
    return true;
}

static enum sim_outcome_of_call run_selection(const struct sim_computation *computation,
                                              const struct sim_call *call)
{
    size_t size = computation->element_bytes;
    struct arrays arrays = {.count = 3};
    struct selection s;
    uint64_t to, from;
    bool done;

    if (!read_selection(computation, call, &s)) {
        return SIM_LEFT;
    }
    to = sim_info_last(&s.result) + (s.slices - 1) * s.to_step + 1;
    from = sim_info_last(&s.source) + (s.most - 1) * s.from_step + 1;
    memset(arrays.windows, 0, sizeof(arrays.windows));
    done =
        sim_window_open(&arrays.windows[0], s.result.data, to * size, call->device, true) &&
        sim_window_open(&arrays.windows[1], s.source.data, from * size, call->device, false) &&
        sim_window_open(&arrays.windows[2], s.indices.data,
                        (sim_info_last(&s.indices) + 1) * sizeof(int64_t), call->device, false) &&
        sim_call_admits(s.slices * s.elements,
                        arrays.windows[1].is_known && arrays.windows[2].is_known) &&
        move_slices(&s, &arrays, size);
    return finish_partly(&arrays, done, s.slices * s.elements * size);
}

/* Template arguments: <type, index, unsigned int, ...> */
static bool read_selection_kernel(const struct sim_cxx_entity *kernel,
                                  struct sim_computation *computation)
{
    computation->way = sim_cxx_is(kernel->name, "indexSelectLargeIndex");
    return kernel->arguments.count >= 3 && sim_cxx_is(kernel->arguments.items[1], "long") &&
           sim_cxx_is(kernel->arguments.items[2], "unsigned int") &&
           read_element(kernel, computation);
}

/* ---- searches ---- */

/* The number of bounds that are below a value or, with `right`, at most equal to it. */
static uint64_t search(const unsigned char *bounds, uint64_t count, enum sim_type type,
                       struct sim_value value, bool right)
{
    uint64_t first = 0, last = count;

    while (first < last) {
        uint64_t middle = first + (last - first) / 2;
        int order =
            sim_value_compare(sim_value_load(bounds + middle * sim_type_size(type), type), value);

        if (right ? order != 1 && order != 2 : order == -1 || (order == 2 && isnan(value.f))) {
            first = middle + 1;
        } else {
            last = middle;
        }
    }
    return first;
}

/* searchsorted_cuda_kernel(result, values, bounds, order of the bounds, values per row, bounds per
 * row, count, whether a bound equal to a value counts as below it, whether there is only one row of
 * bounds). */
static enum sim_outcome_of_call run_search(const struct sim_computation *computation,
                                           const struct sim_call *call)
{
    enum { LENGTH, BOUNDS, COUNT, NUMBERS };
    enum sim_type type = computation->input;
    size_t size = sim_type_size(type), width = sim_type_size(computation->output);
    const unsigned char *order = sim_call_argument(call, 3, sizeof(CUdeviceptr));
    const unsigned char *right = sim_call_argument(call, 7, 1),
                        *one = sim_call_argument(call, 8, 1);
    struct arrays arrays = {.count = 0};
    uint64_t n[NUMBERS], rows;
    bool done;

    if (order == NULL || right == NULL || one == NULL || sim_read_u64(order) != 0 ||
        !read_numbers(call, 4, NUMBERS, n) || n[LENGTH] == 0 || !sim_call_admits(n[BOUNDS], true) ||
        !sim_call_admits(n[COUNT], true)) {
        return SIM_LEFT;
    }
    rows = *one != 0 ? 1 : (n[COUNT] + n[LENGTH] - 1) / n[LENGTH];
    done = open_array(&arrays, call, 0, n[COUNT], width, true) &&
           open_array(&arrays, call, 1, n[COUNT], size, false) &&
           open_array(&arrays, call, 2, rows * n[BOUNDS], size, false) &&
           sim_call_admits(n[COUNT], arrays.windows[1].is_known && arrays.windows[2].is_known);
    for (uint64_t i = 0; done && i < n[COUNT]; i++) {
        uint64_t row = *one != 0 ? 0 : i / n[LENGTH];
        struct sim_value found = {.type = SIM_TYPE_I64};

        found.i =
            (int64_t)search(arrays.windows[2].bytes + row * n[BOUNDS] * size, n[BOUNDS], type,
                            sim_value_load(arrays.windows[1].bytes + i * size, type), *right != 0);
        sim_value_store(arrays.windows[0].bytes + i * width,
                        sim_value_cast(found, computation->output));
    }
    return finish(&arrays, done);
}

static bool read_search(const struct sim_cxx_entity *kernel, struct sim_computation *computation)
{
    if (kernel->arguments.count != 2) {
        return false;
    }
    computation->output = sim_type_named(kernel->arguments.items[1]);
    return computation->output != SIM_TYPE_NONE && read_element(kernel, computation);
}

/* ---- counts ---- */

/* The bin of a value; `count` or more if the value is in no bin. */
static uint64_t bin_of(struct sim_value value, struct sim_value least, struct sim_value most,
                       uint64_t count)
{
    struct sim_value bins = sim_value_of(value.type, (double)count), bin;

    if (sim_value_compare(value, least) == -1 || sim_value_compare(value, most) == 1 ||
        sim_value_compare(value, most) == 2 || sim_value_compare(least, most) != -1) {
        return count;
    }
    bin = sim_functor_combine(SIM_ADD, value, sim_value_of(value.type, -sim_value_number(least)));
    bin = sim_functor_combine(SIM_MULTIPLY, bin, bins);
    bin = sim_functor_combine(
        SIM_DIVIDE, bin,
        sim_value_of(value.type, sim_value_number(most) - sim_value_number(least)));
    bin = sim_value_cast(bin, SIM_TYPE_I64);
    return bin.i == (int64_t)count ? count - 1 : (uint64_t)bin.i;
}

/* kernelHistogram1D(counts, partial counts, values, number of bins, least, most, number of values,
 * ...). */
static enum sim_outcome_of_call run_histogram(const struct sim_computation *computation,
                                              const struct sim_call *call)
{
    enum sim_type type = computation->input, to = computation->output;
    size_t size = sim_type_size(type), width = sim_type_size(to);
    const unsigned char *least = sim_call_argument(call, 4, size);
    const unsigned char *most = sim_call_argument(call, 5, size);
    struct arrays arrays = {.count = 0};
    struct sim_info counts, values;
    uint64_t bins = 0, total = 0;
    bool done = least != NULL && most != NULL && sim_info_read(call, 0, &counts) &&
                sim_info_read(call, 2, &values) && sim_call_number(call, 3, &bins) &&
                sim_call_number(call, 6, &total) && sim_call_admits(bins, true) &&
                bins == sim_info_count(&counts) && total <= sim_info_count(&values) &&
                open_tensor(&arrays, &counts, width, call, true) &&
                open_tensor(&arrays, &values, size, call, false) &&
                sim_call_admits(total, arrays.windows[1].is_known);

    for (uint64_t i = 0; done && i < total; i++) {
        uint64_t bin =
            bin_of(sim_value_load(arrays.windows[1].bytes + sim_info_get(&values, i) * size, type),
                   sim_value_load(least, type), sim_value_load(most, type), bins);

        if (bin < bins) {
            unsigned char *count = arrays.windows[0].bytes + sim_info_get(&counts, bin) * width;

            sim_value_store(count, sim_functor_combine(SIM_ADD, sim_value_load(count, to),
                                                       sim_value_of(to, 1)));
        }
    }
    return finish_partly(&arrays, done, 0);
}

/* Template arguments: <type of counts, type of values, long, ..., lambda>. If the lambda is the
 * second one of CUDA_tensor_histogram, each value counts as one. */
static bool read_histogram(const struct sim_cxx_entity *kernel, struct sim_computation *computation)
{
    static const char counts_one[] = "{lambda(long)#2}";
    const struct sim_cxx_text *arguments = kernel->arguments.items;

    if (kernel->arguments.count != 8 || !sim_cxx_is(arguments[2], "long") ||
        memmem(arguments[7].start, arguments[7].length, counts_one, strlen(counts_one)) == NULL) {
        return false;
    }
    computation->output = sim_type_named(arguments[0]);
    computation->input = sim_type_named(arguments[1]);
    return computation->output != SIM_TYPE_NONE && sim_type_size(computation->input) >= 4;
}

/* ---- the place of each element in its row ---- */

/* fill_reverse_indices_kernel(result, count, divisor). */
static enum sim_outcome_of_call run_places(const struct sim_computation *computation,
                                           const struct sim_call *call)
{
    struct arrays arrays = {.count = 0};
    uint64_t count, length;
    bool done = sim_call_number(call, 1, &count) && sim_call_argument(call, 2, 12) != NULL &&
                (length = sim_read_u32(sim_call_argument(call, 2, 12))) > 0 &&
                open_array(&arrays, call, 0, count, sizeof(int64_t), true);

    for (uint64_t i = 0; done && i < count; i++) {
        uint64_t place = i % length;

        memcpy(arrays.windows[0].bytes + i * sizeof(place), &place, sizeof(place));
    }
    return finish(&arrays, done);
}

static bool read_places(const struct sim_cxx_entity *kernel, struct sim_computation *computation)
{
    return kernel->parameters.count == 3 && sim_cxx_is(kernel->parameters.items[0], "long*");
}

/* ---- repetitions ---- */

/* compute_cuda_kernel(repeats, their running sums, result, number of repeats, size of the result):
 * writes each index i repeats[i] times. */
static enum sim_outcome_of_call run_repeat(const struct sim_computation *computation,
                                           const struct sim_call *call)
{
    size_t size = computation->element_bytes;
    enum sim_type type = computation->input;
    struct arrays arrays = {.count = 0};
    uint64_t n[2];
    bool done = read_numbers(call, 3, 2, n) && open_array(&arrays, call, 2, n[1], size, true) &&
                open_array(&arrays, call, 0, n[0], size, false) &&
                open_array(&arrays, call, 1, n[0], sizeof(int64_t), false);

    for (uint64_t i = 0; done && i < n[0]; i++) {
        int64_t count = sim_value_load(arrays.windows[1].bytes + i * size, type).i;
        int64_t end = (int64_t)sim_read_u64(arrays.windows[2].bytes + i * sizeof(end));

        done = count >= 0 && end >= count && (uint64_t)end <= n[1];
        for (int64_t at = end - count; done && at < end; at++) {
            sim_value_store(arrays.windows[0].bytes + (uint64_t)at * size,
                            (struct sim_value){.type = type, .i = (int64_t)i});
        }
    }
    return finish(&arrays, done);
}

static bool read_repeat(const struct sim_cxx_entity *kernel, struct sim_computation *computation)
{
    return read_element(kernel, computation) && !sim_type_is_float(computation->input);
}

/* ---- parts of unique ---- */

/* adjacent_difference_kernel(count, sorted elements, result): writes 1 for an element that differs
 * from its predecessor, otherwise 0. */
static enum sim_outcome_of_call run_difference(const struct sim_computation *computation,
                                               const struct sim_call *call)
{
    size_t size = sim_type_size(computation->input);
    struct arrays arrays = {.count = 0};
    uint64_t count;
    bool done = sim_call_number(call, 0, &count) &&
                open_array(&arrays, call, 2, count, sizeof(int32_t), true) &&
                open_array(&arrays, call, 1, count, size, false) &&
                sim_call_admits(count, arrays.windows[1].is_known);

    for (uint64_t i = 0; done && i < count; i++) {
        const unsigned char *element = arrays.windows[1].bytes + i * size;
        int32_t differs =
            i > 0 && sim_value_compare(sim_value_load(element - size, computation->input),
                                       sim_value_load(element, computation->input)) != 0;

        memcpy(arrays.windows[0].bytes + i * sizeof(differs), &differs, sizeof(differs));
    }
    return finish(&arrays, done);
}

/* Template arguments: <type const *> */
static bool read_difference(const struct sim_cxx_entity *kernel,
                            struct sim_computation *computation)
{
    static const char constant[] = " const*";
    struct sim_cxx_text text =
        kernel->arguments.count == 1 ? kernel->arguments.items[0] : sim_cxx_text("");

    if (text.length <= strlen(constant) ||
        memcmp(text.start + text.length - strlen(constant), constant, strlen(constant)) != 0) {
        return false;
    }
    text.length -= strlen(constant);
    computation->input = sim_type_named(text);
    return computation->input != SIM_TYPE_NONE;
}

/* scatter_kernel(count, elements, places, result): writes elements[i] to result[places[i]]. */
static enum sim_outcome_of_call run_scatter(const struct sim_computation *computation,
                                            const struct sim_call *call)
{
    struct arrays arrays = {.count = 0};
    uint64_t count;
    bool done = sim_call_number(call, 0, &count) &&
                open_array(&arrays, call, 3, count, sizeof(int64_t), true) &&
                open_array(&arrays, call, 1, count, sizeof(int64_t), false) &&
                open_array(&arrays, call, 2, count, sizeof(int64_t), false);

    for (uint64_t i = 0; done && i < count; i++) {
        uint64_t place = sim_read_u64(arrays.windows[2].bytes + i * sizeof(place));

        done = place < count;
        if (done) {
            memcpy(arrays.windows[0].bytes + place * sizeof(place),
                   arrays.windows[1].bytes + i * sizeof(place), sizeof(place));
        }
    }
    return finish(&arrays, done);
}

static bool read_scatter(const struct sim_cxx_entity *kernel, struct sim_computation *computation)
{
    const struct sim_cxx_list *parameters = &kernel->parameters;

    return kernel->arguments.count == 0 && parameters->count == 4 &&
           sim_cxx_is(parameters->items[1], "long const*") &&
           sim_cxx_is(parameters->items[2], "long const*") &&
           sim_cxx_is(parameters->items[3], "long*");
}

const struct sim_kernel_kind sim_tensor_kinds[] = {
    {"tensor_kernel_scan_innermost_dim", read_scan, run_scan, NULL},
    {"tensor_kernel_scan_outer_dim", read_scan, run_scan, NULL},
    {"triu_tril_kernel", read_triangle, run_triangle, NULL},
    {"roll_cuda_kernel", read_element, run_roll, NULL},
    {"indexSelectSmallIndex", read_selection_kernel, run_selection, NULL},
    {"indexSelectLargeIndex", read_selection_kernel, run_selection, NULL},
    {"searchsorted_cuda_kernel", read_search, run_search, NULL},
    {"kernelHistogram1D", read_histogram, run_histogram, NULL},
    {"fill_reverse_indices_kernel", read_places, run_places, NULL},
    {"compute_cuda_kernel", read_repeat, run_repeat, NULL},
    {"adjacent_difference_kernel", read_difference, run_difference, NULL},
    {"scatter_kernel", read_scatter, run_scatter, NULL},
    {NULL, NULL, NULL, NULL},
};
