/* Kernels that sort, or pick the greatest elements (ATen/native/cuda/SortUtils.cuh, Sort.cu,
 * TensorTopK.cu; the radix sort of CUB).
 *
 * All sorts are computed as stable sorts. If a kernel's sort is not stable and some keys are equal,
 * the values that belong to the keys are unknown. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/pytorch/kind.h"
#include "sim/pytorch/strides.h"

/* An element to sort. Elements are compared by rank, which has the same order as their values. */
struct item {
    uint64_t rank;
    uint64_t place;
};

static int compare_items(const void *left, const void *right)
{
    const struct item *a = left, *b = right;

    if (a->rank != b->rank) {
        return a->rank < b->rank ? -1 : 1;
    }
    return (a->place > b->place) - (a->place < b->place);
}

/* The rank of an element by its bits, as in CUB. A NaN is the greatest, or with its sign set the
 * least. */
static uint64_t rank_of(const unsigned char *element, enum sim_type type)
{
    size_t size = sim_type_size(type);
    uint64_t sign = (uint64_t)1 << (8 * size - 1), bits = 0;

    memcpy(&bits, element, size);
    if (sim_type_is_float(type)) {
        bits = bits == sign ? 0 : bits; /* -0 */
        return bits & sign ? ~bits & (sign | (sign - 1)) : bits | sign;
    }
    return type == SIM_TYPE_BOOL || type == SIM_TYPE_U8 ? bits : bits ^ sign;
}

/* Like rank_of(), but all NaNs are equal, and greater than any number. */
static uint64_t rank_of_number(const unsigned char *element, enum sim_type type)
{
    struct sim_value value = sim_value_load(element, type);

    return sim_type_is_float(type) && isnan(value.f) ? UINT64_MAX : rank_of(element, type);
}

static uint64_t low_bits(size_t count)
{
    return count >= 64 ? UINT64_MAX : ((uint64_t)1 << count) - 1;
}

/* ---- the radix sort of CUB ---- */

/* The position of each argument in a kernel's list of arguments. */
struct radix_layout {
    size_t keys_in, keys_out, values_in, values_out, count, first_bit, last_bit;
    bool last_is_count; /* last_bit is the number of bits */
};

/* DeviceRadixSortSingleTileKernel(keys, sorted keys, values, sorted values, count, first bit, last
 * bit, ...) */
static const struct radix_layout one_tile = {0, 1, 2, 3, 4, 5, 6, false};

/* DeviceRadixSortOnesweepKernel(state, counters, bins, bins, sorted keys, keys, sorted values,
 * values, count, first bit, number of bits, ...): one of several passes. */
static const struct radix_layout one_sweep = {5, 4, 7, 6, 8, 9, 10, true};

struct radix_sort {
    uint64_t count, keep; /* number of elements; mask of a rank's used bits, shifted by `shift` */
    size_t shift;
    struct sim_window keys, sorted, values, moved;
};

static bool read_radix(const struct sim_call *call, const struct radix_layout *layout,
                       struct radix_sort *ret_sort)
{
    uint64_t first, bits;

    if (!sim_call_number(call, layout->count, &ret_sort->count) ||
        !sim_call_number(call, layout->first_bit, &first) ||
        !sim_call_number(call, layout->last_bit, &bits)) {
        return false;
    }
    ret_sort->shift = first;
    if (first >= 64 || bits > 64 || (!layout->last_is_count && bits < first)) {
        return false;
    }
    ret_sort->keep = low_bits(layout->last_is_count ? bits : bits - ret_sort->shift);
    return ret_sort->count > 0 && sim_call_admits(ret_sort->count, true);
}

static bool open_radix(const struct sim_computation *computation, const struct sim_call *call,
                       const struct radix_layout *layout, struct radix_sort *sort)
{
    uint64_t keys = sort->count * sim_type_size(computation->input);
    uint64_t values = sort->count * computation->element_bytes;

    return sim_call_window(call, layout->keys_in, keys, false, &sort->keys) &&
           sim_call_window(call, layout->keys_out, keys, true, &sort->sorted) &&
           (values == 0 ||
            (sim_call_window(call, layout->values_in, values, false, &sort->values) &&
             sim_call_window(call, layout->values_out, values, true, &sort->moved)));
}

static bool sort_radix(const struct sim_computation *computation, struct radix_sort *sort)
{
    size_t size = sim_type_size(computation->input), bytes = computation->element_bytes;
    struct item *items = malloc(sort->count * sizeof(*items));

    if (items == NULL) {
        return false;
    }
    for (uint64_t i = 0; i < sort->count; i++) {
        uint64_t rank = rank_of(sort->keys.bytes + i * size, computation->input);

        rank = computation->way != 0 ? ~rank : rank;
        items[i] = (struct item){rank >> sort->shift & sort->keep, i};
    }
    qsort(items, sort->count, sizeof(*items), compare_items);
    for (uint64_t i = 0; i < sort->count; i++) {
        memcpy(sort->sorted.bytes + i * size, sort->keys.bytes + items[i].place * size, size);
        if (bytes > 0) {
            memcpy(sort->moved.bytes + i * bytes, sort->values.bytes + items[i].place * bytes,
                   bytes);
        }
    }
    free(items);
    return true;
}

static enum sim_outcome_of_call run_radix(const struct sim_computation *computation,
                                          const struct sim_call *call,
                                          const struct radix_layout *layout)
{
    struct radix_sort sort = {.count = 0};
    bool is_known, done;

    if (!read_radix(call, layout, &sort)) {
        return SIM_LEFT;
    }
    done = open_radix(computation, call, layout, &sort) &&
           sim_call_admits(sort.count, sort.keys.is_known) && sort_radix(computation, &sort);
    is_known = sort.keys.is_known;
    sim_window_note(&sort.sorted, sort.sorted.size, is_known);
    sim_window_note(&sort.moved, sort.moved.size, is_known && sort.values.is_known);
    sim_windows_close(&sort.keys, 1, done);
    sim_windows_close(&sort.values, 1, done);
    sim_windows_close(&sort.sorted, 1, done);
    sim_windows_close(&sort.moved, 1, done);
    return done ? SIM_COMPUTED : SIM_LEFT;
}

static enum sim_outcome_of_call run_one_tile(const struct sim_computation *computation,
                                             const struct sim_call *call)
{
    return run_radix(computation, call, &one_tile);
}

static enum sim_outcome_of_call run_one_sweep(const struct sim_computation *computation,
                                              const struct sim_call *call)
{
    return run_radix(computation, call, &one_sweep);
}

/* Template arguments: <policy, order, key, value, ...> */
static bool read_radix_kernel(const struct sim_cxx_entity *kernel,
                              struct sim_computation *computation)
{
    const struct sim_cxx_text *arguments = kernel->arguments.items;
    struct sim_cxx_entity value;

    if (kernel->arguments.count < 5 || !sim_cxx_read(arguments[3], &value)) {
        return false;
    }
    computation->way = sim_cxx_is(arguments[1], "(at_cuda_detail::cub::SortOrder)1");
    computation->input = sim_type_named(arguments[2]);
    computation->element_bytes = sim_type_size(sim_type_named(arguments[3]));
    if (sim_cxx_is(value.name, "OpaqueType") && value.arguments.count == 1) {
        computation->element_bytes = (size_t)strtoul(value.arguments.items[0].start, NULL, 10);
    }
    return computation->input != SIM_TYPE_NONE && computation->element_bytes <= 16 &&
           (computation->element_bytes > 0 || sim_cxx_is(value.name, "NullType"));
}

/* The other kernels of a radix sort write to temporary memory, which no computed kernel reads. */
static enum sim_outcome_of_call run_nothing(const struct sim_computation *computation,
                                            const struct sim_call *call)
{
    return SIM_COMPUTED;
}

static bool read_nothing(const struct sim_cxx_entity *kernel, struct sim_computation *computation)
{
    return true;
}

/* ---- sorts of rows ---- */

/* Rows of keys in one tensor, and rows of their values in another. */
struct rows {
    struct sim_info keys, values;
    uint64_t count, length, key_step, value_step; /* rows; elements of a row; their strides */
    struct sim_window key_window, value_window;
};

static bool read_rows(const struct sim_call *call, struct rows *ret_rows)
{
    return sim_call_number(call, 1, &ret_rows->count) &&
           sim_call_number(call, 2, &ret_rows->length) &&
           sim_call_number(call, 3, &ret_rows->key_step) &&
           sim_call_number(call, 5, &ret_rows->value_step) &&
           sim_info_read(call, 0, &ret_rows->keys) && sim_info_read(call, 4, &ret_rows->values) &&
           ret_rows->count > 0 && ret_rows->length > 0 && sim_call_admits(ret_rows->count, true) &&
           sim_call_admits(ret_rows->length, true) &&
           sim_call_admits(ret_rows->count * ret_rows->length, true) &&
           ret_rows->key_step <= SIM_WINDOW_BYTES && ret_rows->value_step <= SIM_WINDOW_BYTES;
}

/* The number of elements, including gaps, from the first to the last element of all rows. The rows
 * begin at the elements of `info`. */
static uint64_t reach(const struct sim_info *info, uint64_t length, uint64_t step)
{
    return sim_info_last(info) + (length - 1) * step + 1;
}

static bool open_rows(const struct sim_computation *computation, const struct sim_call *call,
                      struct rows *rows)
{
    uint64_t keys = reach(&rows->keys, rows->length, rows->key_step);
    uint64_t values = reach(&rows->values, rows->length, rows->value_step);

    return sim_window_open(&rows->key_window, rows->keys.data,
                           keys * sim_type_size(computation->input), call->device, true) &&
           sim_window_open(&rows->value_window, rows->values.data,
                           values * sim_type_size(computation->output), call->device, true);
}

/* Sorts one row in place. Sets *ret_ties if some of its keys are equal. */
static void sort_row(const struct sim_computation *computation, struct rows *rows, uint64_t row,
                     struct item *items, unsigned char *copy, bool *ret_ties)
{
    size_t key = sim_type_size(computation->input), value = sim_type_size(computation->output);
    unsigned char *keys = rows->key_window.bytes + sim_info_get(&rows->keys, row) * key;
    unsigned char *values = rows->value_window.bytes + sim_info_get(&rows->values, row) * value;
    unsigned char *key_copy = copy, *value_copy = copy + rows->length * key;

    for (uint64_t i = 0; i < rows->length; i++) {
        uint64_t rank = rank_of_number(keys + i * rows->key_step * key, computation->input);

        items[i] = (struct item){computation->unit != 0 ? ~rank : rank, i};
        memcpy(key_copy + i * key, keys + i * rows->key_step * key, key);
        memcpy(value_copy + i * value, values + i * rows->value_step * value, value);
    }
    qsort(items, rows->length, sizeof(*items), compare_items);
    for (uint64_t i = 0; i < rows->length; i++) {
        *ret_ties |= i > 0 && items[i].rank == items[i - 1].rank;
        memcpy(keys + i * rows->key_step * key, key_copy + items[i].place * key, key);
        memcpy(values + i * rows->value_step * value, value_copy + items[i].place * value, value);
    }
}

static bool sort_rows(const struct sim_computation *computation, struct rows *rows, bool *ret_ties)
{
    size_t element = sim_type_size(computation->input) + sim_type_size(computation->output);
    struct item *items = malloc(rows->length * sizeof(*items));
    unsigned char *copy = malloc(rows->length * element);
    bool done = items != NULL && copy != NULL;

    for (uint64_t row = 0; done && row < rows->count; row++) {
        sort_row(computation, rows, row, items, copy, ret_ties);
    }
    free(items);
    free(copy);
    return done;
}

/* The order in which a kernel sorts; IN_ARGUMENT: its last argument determines the order. */
enum order { ASCENDING, DESCENDING, IN_ARGUMENT };

/* bitonicSortKVInPlace(keys, rows, length, stride of keys, values, stride of values, order), and
 * warpMergeSortKVInPlace and radixSortKVInPlace with the same arguments. Only bitonicSortKVInPlace
 * is not stable. */
static enum sim_outcome_of_call run_sort(const struct sim_computation *computation,
                                         const struct sim_call *call)
{
    struct sim_computation ordered = *computation;
    struct rows rows = {.count = 0};
    const unsigned char *order = sim_call_argument(call, 6, 1);
    bool done, ties = false, keys_known, values_known;
    bool is_stable = !sim_cxx_is(sim_cxx_text(computation->kind->name), "bitonicSortKVInPlace");

    if (order == NULL || !read_rows(call, &rows)) {
        return SIM_LEFT;
    }
    ordered.unit = computation->way == IN_ARGUMENT ? *order != 0 : computation->way == DESCENDING;
    done = open_rows(computation, call, &rows);
    keys_known = done && rows.key_window.is_known;
    values_known = keys_known && rows.value_window.is_known;
    done = done && sim_call_admits(rows.count * rows.length, keys_known) &&
           sort_rows(&ordered, &rows, &ties);
    sim_window_note(&rows.key_window, 0, keys_known);
    sim_window_note(&rows.value_window, 0, values_known && (is_stable || !ties));
    sim_windows_close(&rows.key_window, 1, done);
    sim_windows_close(&rows.value_window, 1, done);
    return done ? SIM_COMPUTED : SIM_LEFT;
}

/* Template arguments: <dimensions of keys, dimensions of values, int, int, key, value, order, ...>.
 * In a radix sort, `order` is not a type. */
static bool read_sort(const struct sim_cxx_entity *kernel, struct sim_computation *computation)
{
    const struct sim_cxx_text *arguments = kernel->arguments.items;
    struct sim_cxx_entity order;

    if (kernel->arguments.count < 7 || !sim_cxx_read(arguments[6], &order)) {
        return false;
    }
    computation->input = sim_type_named(arguments[4]);
    computation->output = sim_type_named(arguments[5]);
    computation->way = sim_cxx_is(order.name, "GTOp")   ? DESCENDING
                       : sim_cxx_is(order.name, "LTOp") ? ASCENDING
                                                        : IN_ARGUMENT;
    return computation->input != SIM_TYPE_NONE && computation->output != SIM_TYPE_NONE &&
           (computation->way != IN_ARGUMENT || sim_cxx_is(kernel->name, "radixSortKVInPlace"));
}

/* ---- the greatest ---- */

/* gatherTopK(source, length, number to pick, whether the greatest, rows, stride in the source,
 * picked, its stride, places, their stride, ...). Let "limit" be the last element that a full sort
 * would pick. The kernel writes the elements beyond the limit, in the order of the source, and then
 * elements equal to the limit. */
struct pick {
    struct sim_info source, values, places;
    uint64_t length, number, rows, step, value_step, place_step;
    bool greatest;
    struct sim_window from, picked, found;
};

static bool read_pick(const struct sim_call *call, struct pick *ret_pick)
{
    const unsigned char *greatest = sim_call_argument(call, 3, 1);

    ret_pick->greatest = greatest != NULL && *greatest != 0;
    return greatest != NULL && sim_call_number(call, 1, &ret_pick->length) &&
           sim_call_number(call, 2, &ret_pick->number) &&
           sim_call_number(call, 4, &ret_pick->rows) && sim_call_number(call, 5, &ret_pick->step) &&
           sim_call_number(call, 7, &ret_pick->value_step) &&
           sim_call_number(call, 9, &ret_pick->place_step) &&
           sim_info_read(call, 0, &ret_pick->source) && sim_info_read(call, 6, &ret_pick->values) &&
           sim_info_read(call, 8, &ret_pick->places) && ret_pick->number > 0 &&
           ret_pick->number <= ret_pick->length && ret_pick->rows > 0 &&
           sim_call_admits(ret_pick->rows, true) && sim_call_admits(ret_pick->length, true) &&
           sim_call_admits(ret_pick->rows * ret_pick->length, true) &&
           ret_pick->step <= SIM_WINDOW_BYTES && ret_pick->value_step <= SIM_WINDOW_BYTES &&
           ret_pick->place_step <= SIM_WINDOW_BYTES;
}

static bool open_pick(const struct sim_computation *computation, const struct sim_call *call,
                      struct pick *pick)
{
    size_t size = sim_type_size(computation->input);

    return sim_window_open(&pick->from, pick->source.data,
                           reach(&pick->source, pick->length, pick->step) * size, call->device,
                           false) &&
           sim_window_open(&pick->picked, pick->values.data,
                           reach(&pick->values, pick->number, pick->value_step) * size,
                           call->device, true) &&
           sim_window_open(&pick->found, pick->places.data,
                           reach(&pick->places, pick->number, pick->place_step) * sizeof(int64_t),
                           call->device, true);
}

static void put(struct pick *pick, size_t size, uint64_t row, uint64_t number, uint64_t place)
{
    uint64_t from = sim_info_get(&pick->source, row) + place * pick->step;
    uint64_t value = sim_info_get(&pick->values, row) + number * pick->value_step;
    uint64_t index = sim_info_get(&pick->places, row) + number * pick->place_step;

    memcpy(pick->picked.bytes + value * size, pick->from.bytes + from * size, size);
    memcpy(pick->found.bytes + index * sizeof(place), &place, sizeof(place));
}

static void pick_row(const struct sim_computation *computation, struct pick *pick, uint64_t row,
                     struct item *items, uint64_t *ranks)
{
    size_t size = sim_type_size(computation->input);
    const unsigned char *from = pick->from.bytes + sim_info_get(&pick->source, row) * size;
    uint64_t last, done = 0;

    for (uint64_t i = 0; i < pick->length; i++) {
        uint64_t rank = rank_of_number(from + i * pick->step * size, computation->input);

        ranks[i] = pick->greatest ? ~rank : rank;
        items[i] = (struct item){ranks[i], i};
    }
    qsort(items, pick->length, sizeof(*items), compare_items);
    last = items[pick->number - 1].rank;
    for (uint64_t i = 0; i < pick->length; i++) {
        if (ranks[i] < last) {
            put(pick, size, row, done++, i);
        }
    }
    for (uint64_t i = 0; i < pick->length && done < pick->number; i++) {
        if (ranks[i] == last) {
            put(pick, size, row, done++, i);
        }
    }
}

static bool pick_rows(const struct sim_computation *computation, struct pick *pick)
{
    struct item *items = malloc(pick->length * sizeof(*items));
    uint64_t *ranks = malloc(pick->length * sizeof(*ranks));
    bool done = items != NULL && ranks != NULL;

    for (uint64_t row = 0; done && row < pick->rows; row++) {
        pick_row(computation, pick, row, items, ranks);
    }
    free(items);
    free(ranks);
    return done;
}

static enum sim_outcome_of_call run_pick(const struct sim_computation *computation,
                                         const struct sim_call *call)
{
    struct pick pick;
    uint64_t picked;
    bool done;

    if (!read_pick(call, &pick)) {
        return SIM_LEFT;
    }
    picked = pick.rows * pick.number;
    done = open_pick(computation, call, &pick) &&
           sim_call_admits(pick.rows * pick.length, pick.from.is_known) &&
           pick_rows(computation, &pick);
    sim_window_note(&pick.picked, picked * sim_type_size(computation->input), pick.from.is_known);
    sim_window_note(&pick.found, picked * sizeof(int64_t), pick.from.is_known);
    sim_windows_close(&pick.from, 1, done);
    sim_windows_close(&pick.picked, 1, done);
    sim_windows_close(&pick.found, 1, done);
    return done ? SIM_COMPUTED : SIM_LEFT;
}

/* Template arguments: <type, unsigned int, dimensions, ...> */
static bool read_pick_kernel(const struct sim_cxx_entity *kernel,
                             struct sim_computation *computation)
{
    computation->input =
        kernel->arguments.count < 3 ? SIM_TYPE_NONE : sim_type_named(kernel->arguments.items[0]);
    return computation->input != SIM_TYPE_NONE &&
           sim_cxx_is(kernel->arguments.items[1], "unsigned int");
}

const struct sim_kernel_kind sim_sorting_kinds[] = {
    {"DeviceRadixSortHistogramKernel", read_nothing, run_nothing, NULL},
    {"DeviceRadixSortExclusiveSumKernel", read_nothing, run_nothing, NULL},
    {"DeviceRadixSortSingleTileKernel", read_radix_kernel, run_one_tile, NULL},
    {"DeviceRadixSortOnesweepKernel", read_radix_kernel, run_one_sweep, NULL},
    {"bitonicSortKVInPlace", read_sort, run_sort, NULL},
    {"warpMergeSortKVInPlace", read_sort, run_sort, NULL},
    {"radixSortKVInPlace", read_sort, run_sort, NULL},
    {"gatherTopK", read_pick_kernel, run_pick, NULL},
    {NULL, NULL, NULL, NULL},
};
