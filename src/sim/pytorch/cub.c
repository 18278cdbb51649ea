/* Kernels of the CUB library that PyTorch uses (cub/device/dispatch): sums, selections and runs of
 * one array. Where several of these kernels work together, one of them computes the whole result
 * here. */
#include <stdlib.h>
#include <string.h>

#include "sim/driver/compute/choice.h"
#include "sim/pytorch/kind.h"

/* The elements of an argument. */
struct source {
    struct sim_source_type type;
    int64_t first;            /* first value of a counter */
    struct sim_window window; /* elements of any other kind of source */
};

/* The type that a pointer type points to, without "const". */
static enum sim_type pointed_to(struct sim_cxx_text text)
{
    static const char constant[] = " const";
    struct sim_cxx_entity pointer;

    if (text.length == 0 || text.start[text.length - 1] != '*') {
        return sim_cxx_read(text, &pointer) && sim_cxx_is(pointer.name, "device_ptr") &&
                       pointer.arguments.count == 1
                   ? sim_type_named(pointer.arguments.items[0])
                   : SIM_TYPE_NONE;
    }
    text.length--;
    if (text.length > strlen(constant) &&
        memcmp(text.start + text.length - strlen(constant), constant, strlen(constant)) == 0) {
        text.length -= strlen(constant);
    }
    return sim_type_named(text);
}

/* Reads the type of an iterator. */
static bool read_source(struct sim_cxx_text text, struct sim_source_type *ret_type)
{
    struct sim_cxx_entity iterator, test;

    ret_type->kind = SIM_SOURCE_POINTER;
    ret_type->type = pointed_to(text);
    if (ret_type->type != SIM_TYPE_NONE) {
        return true;
    }
    if (!sim_cxx_read(text, &iterator) || iterator.arguments.count < 2) {
        return false;
    }
    if (sim_cxx_is(iterator.name, "counting_iterator")) {
        ret_type->kind = SIM_SOURCE_COUNTER;
        ret_type->type = sim_type_named(iterator.arguments.items[0]);
    } else if (sim_cxx_is(iterator.name, "transform_iterator") &&
               sim_cxx_read(iterator.arguments.items[0], &test) &&
               (sim_cxx_is(test.name, "NonZeroOp") ||
                sim_cxx_is(test.name, "MapNumberOfTrueValues"))) {
        ret_type->kind = SIM_SOURCE_TEST;
        ret_type->type = pointed_to(iterator.arguments.items[1]);
    }
    return ret_type->type != SIM_TYPE_NONE;
}

/* Opens the elements of an argument. */
static bool open_source(const struct sim_call *call, size_t argument,
                        const struct sim_source_type *type, uint64_t count,
                        struct source *ret_source)
{
    const unsigned char *given = sim_call_argument(call, argument, sizeof(uint64_t));

    *ret_source = (struct source){.type = *type};
    if (given == NULL || !sim_call_admits(count, true)) {
        return false;
    }
    ret_source->window.is_known = true;
    ret_source->first = (int64_t)sim_read_u64(given);
    if (type->kind == SIM_SOURCE_COUNTER || count == 0) {
        return true;
    }
    if (!sim_window_open(&ret_source->window, sim_read_u64(given),
                         count * sim_type_size(type->type), call->device, false)) {
        return false;
    }
    if (!sim_call_admits(count, ret_source->window.is_known)) {
        sim_window_close(&ret_source->window);
        return false;
    }
    return true;
}

static struct sim_value get(const struct source *source, uint64_t number)
{
    enum sim_type type = source->type.type;
    struct sim_value value;

    if (source->type.kind == SIM_SOURCE_COUNTER) {
        return (struct sim_value){.type = type, .i = source->first + (int64_t)number};
    }
    value = sim_value_load(source->window.bytes + number * sim_type_size(type), type);
    return source->type.kind == SIM_SOURCE_TEST
               ? (struct sim_value){.type = SIM_TYPE_BOOL, .i = sim_value_is_true(value)}
               : value;
}

/* Opens the array that an argument points to for writing. */
static bool open_result(const struct sim_call *call, size_t argument, enum sim_type type,
                        uint64_t count, struct sim_window *ret_window)
{
    return sim_call_window(call, argument, count * sim_type_size(type), true, ret_window);
}

/* ---- sums ---- */

/* DeviceReduceSingleTileKernel(source, result, count, plus, first value, ...) and
 * DeviceReduceKernel(source, result, count, ...). In CUB, DeviceReduceKernel writes a sum for each
 * of its blocks, and DeviceReduceSingleTileKernel adds up these sums. Here the sum of the first
 * block is the whole sum, and the sums of the other blocks are 0. */
static enum sim_outcome_of_call run_sum(const struct sim_computation *computation,
                                        const struct sim_call *call)
{
    enum sim_type type = computation->output;
    struct sim_value sum = sim_value_of(type, 0);
    struct source source;
    struct sim_window result;
    uint64_t count, chosen;
    bool computes;

    if (!sim_call_number(call, 2, &count) ||
        !open_result(call, 1, type, computation->way == 0 ? 1 : call->blocks, &result)) {
        return SIM_LEFT;
    }
    computes = open_source(call, 0, &computation->sources[0], count, &source);
    for (uint64_t i = 0; computes && i < count; i++) {
        sum = sim_functor_combine(SIM_ADD, sum, get(&source, i));
    }
    /* A sum of tests counts elements. */
    if (computation->sources[0].kind == SIM_SOURCE_TEST && !(computes && source.window.is_known) &&
        sim_choice_selected(call->device, count, 0, &chosen)) {
        sum = sim_value_of(type, (double)chosen);
    }
    memset(result.bytes, 0, result.size);
    sim_value_store(result.bytes, sum);
    sim_window_note(&result, result.size, computes && source.window.is_known);
    sim_window_close(&result);
    sim_window_close(&source.window);
    return computes ? SIM_COMPUTED : SIM_CLEARED;
}

/* Template arguments: <policy, source, result, offset, operation, ...> */
static bool read_sum(const struct sim_cxx_entity *kernel, struct sim_computation *computation)
{
    struct sim_cxx_entity operation;
    const struct sim_cxx_text *arguments = kernel->arguments.items;
    bool is_one = sim_cxx_is(kernel->name, "DeviceReduceSingleTileKernel");

    computation->way = !is_one;
    if (kernel->arguments.count < 5 || !read_source(arguments[1], &computation->sources[0]) ||
        !sim_cxx_read(arguments[is_one ? 4 : 3], &operation)) {
        return false;
    }
    computation->output = is_one ? pointed_to(arguments[2]) : sim_type_named(arguments[4]);
    return computation->output != SIM_TYPE_NONE && sim_cxx_is(operation.name, "plus");
}

/* ---- selections ---- */

static bool is_selected(const struct source *elements, const struct source *flags, uint64_t number)
{
    if (flags != NULL) {
        return sim_value_is_true(get(flags, number));
    }
    return number == 0 || sim_value_compare(get(elements, number), get(elements, number - 1)) != 0;
}

/* The elements that a kernel selects. With flags, it selects the elements whose flag is set.
 * Without flags, it selects the elements that differ from their predecessor. If the user has chosen
 * the number of elements (choice.h), it selects the first elements. */
struct selection {
    const struct source *elements, *flags;
    uint64_t count;    /* all elements */
    uint64_t selected; /* selected elements */
    bool is_chosen;
};

/* Writes to the result the items of `beside` at the indices of the selected elements. */
static void select_elements(const struct selection *selection, const struct source *beside,
                            unsigned char *result, enum sim_type type)
{
    uint64_t count = selection->is_chosen ? selection->selected : selection->count;

    for (uint64_t i = 0; i < count; i++) {
        if (selection->is_chosen || is_selected(selection->elements, selection->flags, i)) {
            sim_value_store(result, sim_value_cast(get(beside, i), type));
            result += sim_type_size(type);
        }
    }
}

/* Counts the selected elements. `computes`: true if all sources are open. `is_known`: true if the
 * content of all sources is also known. */
static void count_selected(struct selection *selection, int device, bool computes, bool is_known)
{
    uint64_t least = selection->flags == NULL; /* the first element is always selected */

    if (!is_known && sim_choice_selected(device, selection->count, least, &selection->selected)) {
        selection->is_chosen = true;
        return;
    }
    for (uint64_t i = 0; computes && i < selection->count; i++) {
        selection->selected += is_selected(selection->elements, selection->flags, i);
    }
}

/* DeviceSelectSweepKernel(source, flags, result, number selected, state, test, equality, count,
 * ...): selects as in struct selection. */
static enum sim_outcome_of_call run_select(const struct sim_computation *computation,
                                           const struct sim_call *call)
{
    const struct sim_source_type *flagged = &computation->sources[1];
    struct source elements = {.window.bytes = NULL}, flags = {.window.is_known = true};
    struct sim_window windows[2] = {{.bytes = NULL}}; /* selected elements; their number */
    struct selection selection = {&elements, .flags = NULL};
    bool has_elements, computes, is_known;

    if (!sim_call_number(call, 7, &selection.count) ||
        !open_result(call, 3, computation->input, 1, &windows[1])) {
        return SIM_LEFT;
    }
    selection.flags = flagged->kind == SIM_SOURCE_NONE ? NULL : &flags;
    has_elements = open_source(call, 0, &computation->sources[0], selection.count, &elements);
    computes = has_elements &&
               (selection.flags == NULL || open_source(call, 1, flagged, selection.count, &flags));
    is_known = computes && elements.window.is_known && flags.window.is_known;
    count_selected(&selection, call->device, computes, is_known);
    if (has_elements && selection.selected > 0 &&
        open_result(call, 2, computation->output, selection.selected, &windows[0])) {
        select_elements(&selection, &elements, windows[0].bytes, computation->output);
    }
    sim_value_store(windows[1].bytes, sim_value_of(computation->input, (double)selection.selected));
    sim_window_note(&windows[0], windows[0].size, is_known);
    sim_window_note(&windows[1], windows[1].size, is_known);
    sim_windows_close(windows, 2, true);
    sim_window_close(&elements.window);
    sim_window_close(&flags.window);
    return computes ? SIM_COMPUTED : SIM_CLEARED;
}

/* Template arguments: <policy, source, flags, result, number selected, state, test, equality,
 * ...> */
static bool read_select(const struct sim_cxx_entity *kernel, struct sim_computation *computation)
{
    const struct sim_cxx_text *arguments = kernel->arguments.items;
    struct sim_cxx_entity equality;

    if (kernel->arguments.count < 8 || !read_source(arguments[1], &computation->sources[0]) ||
        !sim_cxx_read(arguments[7], &equality)) {
        return false;
    }
    computation->output = pointed_to(arguments[3]);
    computation->input = pointed_to(arguments[4]);
    return computation->output != SIM_TYPE_NONE && computation->input != SIM_TYPE_NONE &&
           (sim_cxx_is(equality.name, "equal_to") ||
            read_source(arguments[2], &computation->sources[1]));
}

/* DeviceUniqueByKeySweepKernel(keys, values, keys selected, values selected, number selected,
 * state, equality, count, ...): selects the keys that differ from their predecessor, and their
 * values. At most all keys are selected, even if the keys are unknown. */
static enum sim_outcome_of_call run_unique(const struct sim_computation *computation,
                                           const struct sim_call *call)
{
    const struct sim_source_type *types = computation->sources;
    struct source keys = {.window.bytes = NULL}, values = {.window.bytes = NULL};
    struct sim_window windows[3] = {{.bytes = NULL}}; /* keys; values; number of keys */
    struct selection selection = {&keys, .flags = NULL};
    bool computes, is_known;

    if (!sim_call_number(call, 7, &selection.count) ||
        !open_result(call, 4, computation->output, 1, &windows[2])) {
        return SIM_LEFT;
    }
    computes = open_source(call, 0, &types[0], selection.count, &keys) &&
               open_source(call, 1, &types[1], selection.count, &values);
    is_known = computes && keys.window.is_known;
    count_selected(&selection, call->device, computes, is_known);
    if (computes && selection.selected > 0 &&
        open_result(call, 2, types[0].type, selection.selected, &windows[0]) &&
        open_result(call, 3, types[1].type, selection.selected, &windows[1])) {
        select_elements(&selection, &keys, windows[0].bytes, types[0].type);
        select_elements(&selection, &values, windows[1].bytes, types[1].type);
    }
    sim_value_store(windows[2].bytes,
                    sim_value_of(computation->output, (double)selection.selected));
    sim_window_note(&windows[0], windows[0].size, is_known);
    sim_window_note(&windows[1], windows[1].size, is_known && values.window.is_known);
    sim_window_note(&windows[2], windows[2].size, is_known);
    sim_windows_close(windows, 3, true);
    sim_window_close(&keys.window);
    sim_window_close(&values.window);
    return computes ? SIM_COMPUTED : SIM_CLEARED;
}

/* Template arguments: <policy, keys, values, keys selected, values selected, number selected,
 * state, equality, ...> */
static bool read_unique(const struct sim_cxx_entity *kernel, struct sim_computation *computation)
{
    const struct sim_cxx_text *arguments = kernel->arguments.items;
    struct sim_source_type *sources = computation->sources;
    struct sim_cxx_entity equality;

    if (kernel->arguments.count < 8 || !read_source(arguments[1], &sources[0]) ||
        !read_source(arguments[2], &sources[1]) || !sim_cxx_read(arguments[7], &equality)) {
        return false;
    }
    computation->output = pointed_to(arguments[5]);
    if (sim_cxx_is(arguments[5], "unsigned int*")) {
        computation->output = SIM_TYPE_I32; /* counts are small enough for a signed type */
    }
    return sources[0].kind == SIM_SOURCE_POINTER && sources[1].kind == SIM_SOURCE_POINTER &&
           pointed_to(arguments[3]) == sources[0].type &&
           pointed_to(arguments[4]) == sources[1].type && computation->output != SIM_TYPE_NONE &&
           sim_cxx_is(equality.name, "equal_to");
}

/* ---- runs ---- */

/* Writes the first element and the length of each run of equal elements; returns the number of
 * runs. */
static uint64_t encode_runs(const struct source *keys, uint64_t count, unsigned char *firsts,
                            unsigned char *lengths, enum sim_type type)
{
    uint64_t runs = 0, first = 0;

    for (uint64_t i = 1; i <= count; i++) {
        if (i < count && !is_selected(keys, NULL, i)) {
            continue;
        }
        sim_value_store(firsts + runs * sim_type_size(keys->type.type), get(keys, first));
        sim_value_store(lengths + runs * sim_type_size(type),
                        sim_value_of(type, (double)(i - first)));
        first = i;
        runs++;
    }
    return runs;
}

/* DeviceReduceByKeyKernel(keys, first keys, ones, lengths, number of runs, state, first tile,
 * equality, operation, count). There are at most as many runs as keys, even if the keys are
 * unknown. */
static enum sim_outcome_of_call run_runs(const struct sim_computation *computation,
                                         const struct sim_call *call)
{
    enum { FIRSTS, LENGTHS, NUMBER, WINDOWS };
    enum sim_type type = computation->output;
    struct source keys = {.window.bytes = NULL};
    struct sim_window windows[WINDOWS] = {{.bytes = NULL}};
    uint64_t count, runs = 0;
    bool computes;

    if (!sim_call_number(call, 9, &count) || count == 0 ||
        !open_result(call, 4, computation->input, 1, &windows[NUMBER])) {
        return SIM_LEFT;
    }
    computes = open_source(call, 0, &computation->sources[0], count, &keys) &&
               open_result(call, 1, keys.type.type, count, &windows[FIRSTS]) &&
               open_result(call, 3, type, count, &windows[LENGTHS]);
    if (computes) {
        runs = encode_runs(&keys, count, windows[FIRSTS].bytes, windows[LENGTHS].bytes, type);
    }
    sim_value_store(windows[NUMBER].bytes, sim_value_of(computation->input, (double)runs));
    for (size_t i = 0; i < WINDOWS; i++) {
        sim_window_note(&windows[i], windows[i].size, computes && keys.window.is_known);
    }
    sim_windows_close(windows, NUMBER, computes);
    sim_window_close(&windows[NUMBER]);
    sim_window_close(&keys.window);
    return computes ? SIM_COMPUTED : SIM_CLEARED;
}

/* Template arguments: <policy, keys, first keys, ones, lengths, number, state, equality, operation,
 * ...> */
static bool read_runs(const struct sim_cxx_entity *kernel, struct sim_computation *computation)
{
    const struct sim_cxx_text *arguments = kernel->arguments.items;
    struct sim_cxx_entity ones, equality;

    if (kernel->arguments.count < 9 || !read_source(arguments[1], &computation->sources[0]) ||
        !sim_cxx_read(arguments[3], &ones) || !sim_cxx_read(arguments[7], &equality)) {
        return false;
    }
    computation->output = pointed_to(arguments[4]);
    computation->input = pointed_to(arguments[5]);
    return computation->sources[0].kind == SIM_SOURCE_POINTER &&
           pointed_to(arguments[2]) == computation->sources[0].type &&
           computation->output != SIM_TYPE_NONE && computation->input != SIM_TYPE_NONE &&
           sim_cxx_is(ones.name, "constant_iterator") && sim_cxx_is(equality.name, "equal_to");
}

/* ---- running sums ---- */

/* Writes, for each element, the sum of all elements up to and including it. */
static void add_up(const struct source *source, uint64_t count, enum sim_type type,
                   struct sim_window *result)
{
    struct sim_value sum = sim_value_of(type, 0);

    for (uint64_t i = 0; i < count; i++) {
        sum = sim_functor_combine(SIM_ADD, sum, get(source, i));
        sim_value_store(result->bytes + i * sim_type_size(type), sum);
    }
    sim_window_note(result, result->size, source->window.is_known);
}

/* DeviceScanKernel(source, result, state, first tile, operation, first value, count). */
static enum sim_outcome_of_call run_scan(const struct sim_computation *computation,
                                         const struct sim_call *call)
{
    struct source source = {.window.bytes = NULL};
    struct sim_window result;
    uint64_t count;
    bool computes;

    if (!sim_call_number(call, 6, &count)) {
        return SIM_LEFT;
    }
    computes = open_source(call, 0, &computation->sources[0], count, &source) &&
               open_result(call, 1, computation->output, count, &result);
    if (computes) {
        add_up(&source, count, computation->output, &result);
        sim_window_close(&result);
    }
    sim_window_close(&source.window);
    return computes ? SIM_COMPUTED : SIM_LEFT;
}

/* Template arguments: <policy, source, result, state, operation, first value, ...> */
static bool read_scan(const struct sim_cxx_entity *kernel, struct sim_computation *computation)
{
    const struct sim_cxx_text *arguments = kernel->arguments.items;
    struct sim_cxx_entity operation, first;

    if (kernel->arguments.count < 6 || !read_source(arguments[1], &computation->sources[0]) ||
        !sim_cxx_read(arguments[4], &operation) || !sim_cxx_read(arguments[5], &first)) {
        return false;
    }
    computation->output = pointed_to(arguments[2]);
    return computation->output != SIM_TYPE_NONE && sim_cxx_is(operation.name, "plus") &&
           sim_cxx_is(first.name, "NullType");
}

/* ---- preparations ---- */

/* DeviceScanInitKernel and DeviceCompactInitKernel write only to temporary memory, which no
 * computed kernel reads. */
static enum sim_outcome_of_call run_nothing(const struct sim_computation *computation,
                                            const struct sim_call *call)
{
    return SIM_COMPUTED;
}

static bool read_nothing(const struct sim_cxx_entity *kernel, struct sim_computation *computation)
{
    return true;
}

const struct sim_kernel_kind sim_cub_kinds[] = {
    {"DeviceScanInitKernel", read_nothing, run_nothing, NULL},
    {"DeviceCompactInitKernel", read_nothing, run_nothing, NULL},
    {"DeviceReduceSingleTileKernel", read_sum, run_sum, NULL},
    {"DeviceReduceKernel", read_sum, run_sum, NULL},
    {"DeviceSelectSweepKernel", read_select, run_select, NULL},
    {"DeviceUniqueByKeySweepKernel", read_unique, run_unique, NULL},
    {"DeviceReduceByKeyKernel", read_runs, run_runs, NULL},
    {"DeviceScanKernel", read_scan, run_scan, NULL},
    {NULL, NULL, NULL, NULL},
};
