/* Kernels that reduce dimensions of a tensor (ATen/native/cuda/Reduce.cuh). */
#include <math.h>
#include <string.h>

#include "sim/driver/memory/content.h"
#include "sim/pytorch/kind.h"
#include "sim/pytorch/strides.h"

/* The configuration in a ReduceOp is an array of ints. This file uses two of them: the number of
 * inputs for each output, and the number of outputs. */
enum { CONFIG_BYTES = 64, CONFIG_INPUTS = 1, CONFIG_OUTPUTS = 2 };

/* The reductions: combining values by a functor, finding an extreme (its place, or both value and
 * place), or finding both extremes. */
enum way {
    VALUES,
    MEAN,
    PLACE_OF_GREATEST,
    PLACE_OF_LEAST,
    GREATEST_AND_PLACE,
    LEAST_AND_PLACE,
    LEAST_AND_GREATEST
};

static const struct {
    const char *name;
    enum way way;
} ways[] = {
    {"func_wrapper_t", VALUES},        {"MeanOps", MEAN},
    {"ArgMaxOps", PLACE_OF_GREATEST},  {"ArgMinOps", PLACE_OF_LEAST},
    {"MaxOps", GREATEST_AND_PLACE},    {"MinOps", LEAST_AND_PLACE},
    {"MinMaxOps", LEAST_AND_GREATEST},
};

/* A ReduceOp: the operation, its neutral element, the configuration, two offset calculators, the
 * source, two results, three buffers, an index, and two flags. */
struct reduction {
    struct sim_value ident;
    double factor; /* of a mean */
    uint64_t inputs, outputs;
    struct sim_offsets input, output;
    CUdeviceptr source, results[2];
    struct sim_window windows[3]; /* the source, and the results */
};

static size_t round_up(size_t size, size_t align)
{
    return (size + align - 1) / align * align;
}

/* The offset of the configuration. */
static size_t config_offset(const struct sim_computation *computation)
{
    size_t size = sim_type_size(computation->functor.result), end;

    switch ((enum way)computation->way) {
    case VALUES:
        end = 2 * size;
        break;
    case MEAN:
        end = 2 * size;
        break;
    case LEAST_AND_GREATEST: /* before it: an empty operation, a pair of values */
        end = 3 * sim_type_size(computation->output);
        break;
    default: /* before it: the operation, a pair of value and place */
        return 3 * sizeof(int64_t);
    }
    return round_up(end, sizeof(int));
}

static bool read_reduction(const struct sim_computation *computation, const struct sim_call *call,
                           struct reduction *ret_reduction)
{
    size_t config = config_offset(computation);
    size_t input = config + CONFIG_BYTES, output = input + sim_offsets_bytes(1);
    size_t source = round_up(output + sim_offsets_bytes(2), sizeof(CUdeviceptr));
    size_t flags = source + 7 * sizeof(CUdeviceptr);
    size_t size = round_up(flags + 2 + sizeof(int), sizeof(CUdeviceptr));
    const unsigned char *op = sim_call_argument(call, 0, size);
    enum sim_type type = computation->functor.result;

    /* A launch that accumulates, or that is not final, is a part of a larger reduction. */
    if (op == NULL || call->params[0].size != size || op[flags] != 0 || op[flags + 1] == 0 ||
        !sim_offsets_read(op + input, 1, &ret_reduction->input) ||
        !sim_offsets_read(op + output, 2, &ret_reduction->output)) {
        return false;
    }
    ret_reduction->ident = sim_value_load(op + sim_type_size(type), type);
    ret_reduction->factor = sim_value_number(sim_value_load(op, type));
    ret_reduction->inputs = sim_read_u32(op + config + CONFIG_INPUTS * sizeof(int));
    ret_reduction->outputs = sim_read_u32(op + config + CONFIG_OUTPUTS * sizeof(int));
    ret_reduction->source = sim_read_u64(op + source);
    ret_reduction->results[0] = sim_read_u64(op + source + sizeof(CUdeviceptr));
    ret_reduction->results[1] = sim_read_u64(op + source + 2 * sizeof(CUdeviceptr));
    return true;
}

/* Bytes of an element of the second result; 0 if there is none. */
static size_t second_bytes(const struct sim_computation *computation)
{
    switch ((enum way)computation->way) {
    case GREATEST_AND_PLACE:
    case LEAST_AND_PLACE:
        return sizeof(int64_t);
    case LEAST_AND_GREATEST:
        return sim_type_size(computation->output);
    default:
        return 0;
    }
}

/* The address of an output's second result, from the offset of the first result; NULL if there is
 * no second result. */
static unsigned char *second_at(const struct sim_computation *computation,
                                const struct reduction *r, uint64_t offset)
{
    size_t second = second_bytes(computation);

    return second == 0 ? NULL
                       : r->windows[2].bytes + offset / sim_type_size(computation->output) * second;
}

static uint64_t source_bytes(const struct sim_computation *computation, const struct reduction *r)
{
    return sim_offsets_last(&r->input, r->inputs, 0) + sim_offsets_last(&r->output, r->outputs, 1) +
           sim_type_size(computation->input);
}

static bool open_results(const struct sim_computation *computation, struct reduction *r, int device)
{
    uint64_t last = sim_offsets_last(&r->output, r->outputs, 0);
    size_t size = sim_type_size(computation->output), second = second_bytes(computation);

    return sim_window_open(&r->windows[1], r->results[0], last + size, device, true) &&
           (second == 0 || sim_window_open(&r->windows[2], r->results[1],
                                           (last / size + 1) * second, device, true));
}

static struct sim_value element(const struct sim_computation *computation,
                                const struct reduction *r, uint64_t output, uint64_t input)
{
    return sim_value_load(r->windows[0].bytes + sim_offsets_get(&r->output, output, 1) +
                              sim_offsets_get(&r->input, input, 0),
                          computation->input);
}

static struct sim_value reduce_values(const struct sim_computation *computation,
                                      const struct reduction *r, uint64_t output)
{
    enum sim_type type = computation->functor.result;
    struct sim_value pair[2] = {r->ident};

    for (uint64_t i = 0; i < r->inputs; i++) {
        pair[1] = sim_value_cast(element(computation, r, output, i), type);
        pair[0] = sim_functor_apply(&computation->functor, NULL, pair);
    }
    if (computation->way == MEAN) {
        return sim_value_of(type, sim_value_number(pair[0]) * r->factor);
    }
    return pair[0];
}

/* The place of the first extreme value. A NaN is more extreme than any number. */
static uint64_t find_place(const struct sim_computation *computation, const struct reduction *r,
                           uint64_t output, bool greatest, struct sim_value *ret_value)
{
    uint64_t place = 0;

    *ret_value = element(computation, r, output, 0);
    for (uint64_t i = 1; i < r->inputs; i++) {
        struct sim_value value = element(computation, r, output, i);
        int order = sim_value_compare(value, *ret_value);

        if (order == (greatest ? 1 : -1) ||
            (order == 2 && isnan(value.f) && !isnan(ret_value->f))) {
            *ret_value = value;
            place = i;
        }
    }
    return place;
}

static struct sim_value extreme(const struct sim_computation *computation,
                                const struct reduction *r, uint64_t output, bool greatest)
{
    struct sim_value value;

    (void)find_place(computation, r, output, greatest, &value);
    return value;
}

/* The first result of an output. The second result is stored at `second`, unless that is NULL. */
static struct sim_value reduce_one(const struct sim_computation *computation,
                                   const struct reduction *r, uint64_t output,
                                   unsigned char *second)
{
    bool greatest = computation->way == PLACE_OF_GREATEST || computation->way == GREATEST_AND_PLACE;
    struct sim_value value;
    int64_t place;

    switch ((enum way)computation->way) {
    case VALUES:
    case MEAN:
        return reduce_values(computation, r, output);
    case LEAST_AND_GREATEST:
        value = extreme(computation, r, output, /* greatest */ true);
        sim_value_store(second, sim_value_cast(value, computation->output));
        return extreme(computation, r, output, /* greatest */ false);
    default:
        place = (int64_t)find_place(computation, r, output, greatest, &value);
        if (second == NULL) {
            return (struct sim_value){.type = SIM_TYPE_I64, .i = place};
        }
        memcpy(second, &place, sizeof(place));
        return value;
    }
}

static void reduce_output(const struct sim_computation *computation, struct reduction *r,
                          uint64_t output)
{
    uint64_t offset = sim_offsets_get(&r->output, output, 0);
    struct sim_value value = reduce_one(computation, r, output, second_at(computation, r, offset));

    sim_value_store(r->windows[1].bytes + offset, sim_value_cast(value, computation->output));
}

static void clear_output(const struct sim_computation *computation, struct reduction *r,
                         uint64_t output)
{
    uint64_t offset = sim_offsets_get(&r->output, output, 0);
    unsigned char *second = second_at(computation, r, offset);

    memset(r->windows[1].bytes + offset, 0, sim_type_size(computation->output));
    if (second != NULL) {
        memset(second, 0, second_bytes(computation));
    }
}

/* True if the input is small enough. If its content is known, a larger maximum applies. */
static bool is_worth_while(const struct sim_computation *computation, const struct reduction *r)
{
    return sim_call_admits(r->inputs * r->outputs, false) ||
           (sim_call_admits(r->inputs * r->outputs, true) &&
            sim_mem_is_known(r->source, source_bytes(computation, r)));
}

static enum sim_outcome_of_call run(const struct sim_computation *computation,
                                    const struct sim_call *call)
{
    struct reduction r = {.inputs = 0};
    bool computes, opened;

    if (!read_reduction(computation, call, &r) || r.inputs == 0 || r.outputs == 0 ||
        !sim_call_admits(r.outputs, true)) {
        return SIM_LEFT;
    }
    computes = is_worth_while(computation, &r);
    opened = open_results(computation, &r, call->device) &&
             (!computes || sim_window_open(&r.windows[0], r.source, source_bytes(computation, &r),
                                           call->device, false));
    for (uint64_t i = 0; opened && i < r.outputs; i++) {
        if (computes) {
            reduce_output(computation, &r, i);
        } else {
            clear_output(computation, &r, i);
        }
    }
    sim_window_note(&r.windows[1], r.outputs * sim_type_size(computation->output),
                    r.windows[0].is_known);
    sim_window_note(&r.windows[2], r.outputs * second_bytes(computation), r.windows[0].is_known);
    sim_windows_close(r.windows, sizeof(r.windows) / sizeof(r.windows[0]), opened);
    return !opened ? SIM_LEFT : computes ? SIM_COMPUTED : SIM_CLEARED;
}

/* Reads the operation of a mean, a sum with a factor: MeanOps<scalar, accumulated, factor, result>.
 */
static bool read_mean(const struct sim_cxx_entity *ops, struct sim_computation *computation)
{
    enum sim_type type = sim_type_named(ops->arguments.items[1]);

    computation->functor = (struct sim_functor){
        .operation = SIM_ADD,
        .operands = {{.type = type}, {.type = type, .at = 1}},
        .operand_count = 2,
        .inputs = {type, type},
        .input_count = 2,
        .result = type,
    };
    return ops->arguments.count == 4 && type != SIM_TYPE_NONE;
}

static bool read_way(const struct sim_cxx_entity *ops, struct sim_computation *computation)
{
    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
        if (!sim_cxx_is(ops->name, ways[i].name)) {
            continue;
        }
        computation->way = ways[i].way;
        switch (ways[i].way) {
        case VALUES:
            return ops->arguments.count == 2 &&
                   sim_functor_read(ops->arguments.items[1], &computation->functor) &&
                   computation->functor.input_count == 2;
        case MEAN:
            return read_mean(ops, computation);
        default:
            return true;
        }
    }
    return false;
}

/* reduce_kernel<int, int, ReduceOp<input, operation, index, output, int, int>>(ReduceOp). */
static bool read(const struct sim_cxx_entity *kernel, struct sim_computation *computation)
{
    struct sim_cxx_entity op, ops;

    if (kernel->arguments.count != 3 || !sim_cxx_read(kernel->arguments.items[2], &op) ||
        op.arguments.count < 4 || !sim_cxx_read(op.arguments.items[1], &ops)) {
        return false;
    }
    computation->input = sim_type_named(op.arguments.items[0]);
    computation->output = sim_type_named(op.arguments.items[3]);
    return computation->input != SIM_TYPE_NONE && computation->output != SIM_TYPE_NONE &&
           read_way(&ops, computation);
}

const struct sim_kernel_kind sim_reduce_kinds[] = {
    {"reduce_kernel", read, run, NULL},
    {NULL, NULL, NULL, NULL},
};
