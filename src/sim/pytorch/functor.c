#include "sim/pytorch/functor.h"

#include <math.h>
#include <string.h>

/* The numbers that a functor keeps. A factor has the type in which PyTorch computes. */
enum state {
    NONE,
    VALUE,
    FACTOR,
    VALUE_AND_FACTOR,       /* the value is the second operand */
    VALUE_FIRST_AND_FACTOR, /* the value is the first operand */
    CHOICE,
    CHOICE_AND_VALUE,
    CHOICE_AND_LIMITS,
};

enum result { SAME, FIRST, SECOND_ARGUMENT, BOOL, F16, BF16 };

static const struct known {
    enum sim_operation operation;
    const char *name;
    size_t inputs;
    enum result result;
    enum state state;
} known[] = {
#define SIM_OPERATION(operation, name, inputs, result, state)                                      \
    {SIM_##operation, name, inputs, result, state},
#include "sim/pytorch/operation.def"
#undef SIM_OPERATION
};

static const struct known *find(struct sim_cxx_text name)
{
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (sim_cxx_is(name, known[i].name)) {
            return &known[i];
        }
    }
    return NULL;
}

static size_t round_up(size_t size, size_t align)
{
    return (size + align - 1) / align * align;
}

static void add_input(struct sim_functor *functor, enum sim_type type)
{
    functor->operands[functor->operand_count++] =
        (struct sim_operand){.type = type, .at = functor->input_count};
    functor->inputs[functor->input_count++] = type;
}

/* Adds a kept operand after the operands added before. */
static void add_kept(struct sim_functor *functor, enum sim_type type)
{
    size_t size = sim_type_size(type);
    size_t at = round_up(functor->bytes, size > 0 ? size : 1);

    functor->operands[functor->operand_count++] =
        (struct sim_operand){.is_kept = true, .type = type, .at = at};
    functor->bytes = at + size;
    functor->align = size > functor->align ? size : functor->align;
}

/* The type of elements that are only selected, not computed: any type of their size will do. */
static enum sim_type chosen_type(struct sim_cxx_text name)
{
    return sim_cxx_is(name, "unsigned short")  ? SIM_TYPE_I16
           : sim_cxx_is(name, "unsigned int")  ? SIM_TYPE_I32
           : sim_cxx_is(name, "unsigned long") ? SIM_TYPE_I64
                                               : sim_type_named(name);
}

static enum sim_type listed_type(const struct sim_cxx_list *list, size_t item)
{
    return item < list->count ? sim_type_named(list->items[item]) : SIM_TYPE_NONE;
}

/* The type of an input: the type of a lambda's parameter, or a class's first template argument. */
static enum sim_type input_type(const struct known *row, const struct sim_cxx_entity *entity,
                                size_t input)
{
    if (row->operation == SIM_SELECT && input < entity->parameters.count) {
        return chosen_type(entity->parameters.items[input]);
    }
    return entity->is_lambda ? listed_type(&entity->parameters, input)
                             : listed_type(&entity->arguments, 0);
}

static enum sim_type result_type(const struct sim_functor *functor, enum result result,
                                 const struct sim_cxx_entity *entity, enum sim_type own)
{
    switch (result) {
    case SECOND_ARGUMENT:
        return listed_type(&entity->arguments, 1);
    case BOOL:
        return SIM_TYPE_BOOL;
    case F16:
        return SIM_TYPE_F16;
    case BF16:
        return SIM_TYPE_BF16;
    case FIRST:
        return functor->inputs[0];
    default:
        return functor->input_count > 0 ? functor->inputs[functor->input_count - 1] : own;
    }
}

static void add_operands(struct sim_functor *functor, const struct known *row,
                         const struct sim_cxx_entity *entity)
{
    enum sim_type own = input_type(row, entity, 0), compute = sim_type_to_compute(own);

    functor->has_choice = row->state >= CHOICE;
    functor->bytes = functor->has_choice ? sizeof(int) : 0;
    functor->align = functor->has_choice ? sizeof(int) : 1;
    if (row->state == VALUE_FIRST_AND_FACTOR) {
        add_kept(functor, compute);
    }
    for (size_t i = 0; i < row->inputs; i++) {
        add_input(functor, input_type(row, entity, i));
    }
    if (row->state == VALUE || row->state == CHOICE_AND_VALUE) {
        add_kept(functor, own);
    }
    if (row->state == CHOICE_AND_LIMITS) {
        add_kept(functor, compute);
    }
    if (row->state == VALUE_AND_FACTOR || row->state == CHOICE_AND_LIMITS) {
        add_kept(functor, compute);
    }
    if (row->state == FACTOR || row->state == VALUE_AND_FACTOR ||
        row->state == VALUE_FIRST_AND_FACTOR) {
        add_kept(functor, compute);
    }
    functor->result = result_type(functor, row->result, entity, own);
    functor->bytes = functor->bytes == 0 ? 1 : round_up(functor->bytes, functor->align);
}

static bool is_complete(const struct sim_functor *functor)
{
    for (size_t i = 0; i < functor->operand_count; i++) {
        if (functor->operands[i].type == SIM_TYPE_NONE) {
            return false;
        }
    }
    return functor->result != SIM_TYPE_NONE;
}

/* The exponents 2, 3 and -2 have one lambda each, numbered from 1. The lambda for other exponents
 * keeps the exponent and is not supported. */
static bool number_power(struct sim_cxx_text type, struct sim_functor *functor)
{
    const char *last = type.length < 2 ? "" : type.start + type.length - 2;

    if (*last < '1' || *last > '3' || last[1] != '}') {
        return false;
    }
    functor->operation = (enum sim_operation)(SIM_SQUARE + (*last - '1'));
    return true;
}

static bool read_plain(const struct sim_cxx_entity *entity, struct sim_functor *functor)
{
    const struct known *row = find(entity->name);

    if (row == NULL) {
        return false;
    }
    functor->operation = row->operation;
    functor->is_lambda = entity->is_lambda;
    add_operands(functor, row, entity);
    return is_complete(functor);
}

/* Replaces an operand of a functor of two inputs by a kept number. */
static void bind(struct sim_functor *functor, size_t operand, enum sim_type type)
{
    struct sim_operand kept;

    add_kept(functor, sim_type_to_compute(type));
    kept = functor->operands[--functor->operand_count];
    functor->operands[operand] = kept;
    functor->operands[1 - operand].at = 0;
    functor->inputs[0] = functor->operands[1 - operand].type;
    functor->input_count = 1;
    functor->bytes = round_up(functor->bytes, functor->align);
}

/* BinaryFunctor<A, B, R, F>, and AUnaryFunctor and BUnaryFunctor, which keep a number in the place
 * of A or B. */
static bool read_around(const struct sim_cxx_entity *entity, struct sim_functor *functor)
{
    const struct sim_cxx_list *arguments = &entity->arguments;

    if (arguments->count != 4 || !sim_functor_read(arguments->items[3], functor) ||
        functor->input_count != 2 || functor->operand_count != 2) {
        return false;
    }
    for (size_t i = 0; i < 2; i++) {
        functor->inputs[i] = functor->operands[i].type = sim_type_named(arguments->items[i]);
    }
    functor->result = sim_type_named(arguments->items[2]);
    if (!sim_cxx_is(entity->name, "BinaryFunctor")) {
        size_t kept = sim_cxx_is(entity->name, "AUnaryFunctor") ? 0 : 1;

        bind(functor, kept, functor->operands[kept].type);
    }
    return is_complete(functor);
}

bool sim_functor_read(struct sim_cxx_text type, struct sim_functor *ret_functor)
{
    struct sim_cxx_entity entity;

    memset(ret_functor, 0, sizeof(*ret_functor));
    if (!sim_cxx_read(type, &entity)) {
        return false;
    }
    if (sim_cxx_is(entity.name, "BinaryFunctor") || sim_cxx_is(entity.name, "AUnaryFunctor") ||
        sim_cxx_is(entity.name, "BUnaryFunctor")) {
        return read_around(&entity, ret_functor);
    }
    return read_plain(&entity, ret_functor) &&
           (ret_functor->operation != SIM_SQUARE || number_power(type, ret_functor));
}

static bool keeps_nothing(const struct sim_functor *functor)
{
    for (size_t i = 0; i < functor->operand_count; i++) {
        if (functor->operands[i].is_kept) {
            return false;
        }
    }
    return !functor->has_choice;
}

/* Compilers add a pointer to lambdas for host and device, in some files also to empty lambdas. */
size_t sim_functor_bytes(const struct sim_functor *functor, bool has_pointer)
{
    if (!has_pointer) {
        return functor->bytes;
    }
    return (keeps_nothing(functor) ? 0 : round_up(functor->bytes, sizeof(void *))) + sizeof(void *);
}

bool sim_functor_fits(const struct sim_functor *functor, size_t size)
{
    return size == functor->bytes ||
           (functor->is_lambda && size == sim_functor_bytes(functor, true));
}

/* ---- computing ---- */

static int64_t divide_down(int64_t a, int64_t b)
{
    int64_t quotient = a / b;

    return quotient - (a % b != 0 && (a < 0) != (b < 0));
}

/* A right shift by 64 bits or more leaves copies of the sign; a left shift leaves 0. */
static int64_t shift(enum sim_operation operation, int64_t a, int64_t b)
{
    if (operation == SIM_SHIFT_RIGHT) {
        return a >> (b < 0 || b > 63 ? 63 : b);
    }
    return b < 0 || b > 63 ? 0 : (int64_t)((uint64_t)a << b);
}

static int64_t power(int64_t base, int64_t exponent)
{
    uint64_t result = 1, factor = (uint64_t)base;

    if (exponent < 0) { /* rounded towards zero */
        return base == 1 ? 1 : base == -1 ? (exponent % 2 == 0 ? 1 : -1) : 0;
    }
    for (; exponent > 0; exponent /= 2) {
        result *= exponent % 2 != 0 ? factor : 1;
        factor *= factor;
    }
    return (int64_t)result;
}

static int64_t on_two_integers(enum sim_operation operation, int64_t a, int64_t b)
{
    switch (operation) {
    case SIM_POWER:
        return power(a, b);
    case SIM_SQUARE:
        return power(a, 2);
    case SIM_CUBE:
        return power(a, 3);
    case SIM_SQUARE_RECIPROCAL:
        return power(a, -2);
    case SIM_TRUNCATED_REMAINDER:
        return b == 0 || b == -1 ? 0 : a % b;
    case SIM_SHIFT_LEFT:
    case SIM_SHIFT_RIGHT:
        return shift(operation, a, b);
    case SIM_SIGN:
        return (a > 0) - (a < 0);
    default:
        return a; /* rounding functions */
    }
}

/* Integers wrap around, as on a GPU. A division by zero, or one that overflows, gives 0. */
static int64_t on_integers(enum sim_operation operation, int64_t a, int64_t b)
{
    bool divides = b != 0 && !(a == INT64_MIN && b == -1);

    switch (operation) {
    case SIM_ADD:
        return (int64_t)((uint64_t)a + (uint64_t)b);
    case SIM_MULTIPLY:
        return (int64_t)((uint64_t)a * (uint64_t)b);
    case SIM_DIVIDE:
        return divides ? a / b : 0;
    case SIM_DIVIDE_DOWN:
        return divides ? divide_down(a, b) : 0;
    case SIM_REMAINDER:
        return divides ? a - divide_down(a, b) * b : 0;
    case SIM_AND:
        return a & b;
    case SIM_OR:
        return a | b;
    case SIM_XOR:
        return a ^ b;
    case SIM_NOT:
        return ~a;
    case SIM_ABSOLUTE:
        return a < 0 ? (int64_t)(0 - (uint64_t)a) : a;
    case SIM_NEGATE:
        return (int64_t)(0 - (uint64_t)a);
    default:
        return on_two_integers(operation, a, b);
    }
}

static double on_more_numbers(enum sim_operation operation, double a, double b)
{
    switch (operation) {
    case SIM_POWER:
        return pow(a, b);
    case SIM_SQUARE:
        return a * a;
    case SIM_CUBE:
        return a * a * a;
    case SIM_SQUARE_RECIPROCAL:
        return 1 / (a * a);
    case SIM_TRUNCATED_REMAINDER:
        return fmod(a, b);
    case SIM_ANGLE:
        return atan2(a, b);
    case SIM_SQUARED_DIFFERENCE:
        return (a - b) * (a - b);
    case SIM_SIGN:
        return (a > 0) - (a < 0);
    case SIM_SIGMOID:
        return 1 / (1 + exp(-a));
    case SIM_GATED:
        return a / (1 + exp(-a));
    case SIM_LOGARITHM_OF_NEXT:
        return log1p(a);
    case SIM_EXPONENTIAL_LESS_ONE:
        return expm1(a);
    case SIM_LOGARITHM_TO_TWO:
        return log2(a);
    case SIM_ERROR_FUNCTION:
        return erf(a);
    default:
        return a;
    }
}

static double on_numbers(enum sim_operation operation, double a, double b)
{
    switch (operation) {
    case SIM_ADD:
        return a + b;
    case SIM_MULTIPLY:
        return a * b;
    case SIM_DIVIDE:
        return a / b;
    case SIM_DIVIDE_DOWN:
        return floor(a / b);
    case SIM_REMAINDER:
        return a - floor(a / b) * b;
    case SIM_ABSOLUTE:
        return fabs(a);
    case SIM_NEGATE:
        return -a;
    case SIM_FLOOR:
        return floor(a);
    case SIM_CEIL:
        return ceil(a);
    case SIM_TRUNCATE:
        return trunc(a);
    case SIM_ROUND:
        return nearbyint(a);
    case SIM_RECIPROCAL:
        return 1 / a;
    case SIM_ROOT:
        return sqrt(a);
    case SIM_ROOT_RECIPROCAL:
        return 1 / sqrt(a);
    case SIM_SINE:
        return sin(a);
    case SIM_COSINE:
        return cos(a);
    case SIM_TANGENT_HYPERBOLIC:
        return tanh(a);
    case SIM_EXPONENTIAL:
        return exp(a);
    case SIM_LOGARITHM:
        return log(a);
    default:
        return on_more_numbers(operation, a, b);
    }
}

static bool compare(enum sim_operation operation, struct sim_value a, struct sim_value b)
{
    int order = sim_value_compare(a, b);

    switch (operation) {
    case SIM_GREATER_OR_EQUAL:
        return order == 0 || order == 1;
    case SIM_GREATER:
        return order == 1;
    case SIM_LESS_OR_EQUAL:
        return order == 0 || order == -1;
    case SIM_LESS:
        return order == -1;
    case SIM_EQUAL:
        return order == 0;
    default:
        return order != 0;
    }
}

/* The greatest or the least of two values. A NaN is both the greatest and the least value. */
static struct sim_value extreme(enum sim_operation operation, struct sim_value a,
                                struct sim_value b)
{
    int order = sim_value_compare(a, b);

    if (order == 2) {
        return isnan(a.f) ? a : b;
    }
    return (order >= 0) == (operation == SIM_GREATEST) ? a : b;
}

/* Converts both operands to one type: the type of `a`, unless only `b` has a floating type. */
static struct sim_value arithmetic(enum sim_operation operation, struct sim_value a,
                                   struct sim_value b)
{
    enum sim_type type = sim_type_is_float(a.type) || !sim_type_is_float(b.type) ? a.type : b.type;

    type = sim_type_to_compute(type);
    a = sim_value_cast(a, type);
    b = sim_value_cast(b, type);
    if (sim_type_is_float(type)) {
        return sim_value_of(type, on_numbers(operation, a.f, b.f));
    }
    if (type == SIM_TYPE_BOOL && operation == SIM_NOT) {
        return (struct sim_value){.type = type, .i = a.i == 0};
    }
    return sim_value_cast(
        (struct sim_value){.type = SIM_TYPE_I64, .i = on_integers(operation, a.i, b.i)}, type);
}

static struct sim_value truth(bool is_true)
{
    return (struct sim_value){.type = SIM_TYPE_BOOL, .i = is_true};
}

static struct sim_value compute(enum sim_operation operation, const struct sim_value *v)
{
    switch (operation) {
    case SIM_COPY:
        return v[0];
    case SIM_GREATEST:
    case SIM_LEAST:
        return extreme(operation, v[0], v[1]);
    case SIM_CLAMP_LOW:
        return extreme(SIM_GREATEST, v[0], sim_value_cast(v[1], v[0].type));
    case SIM_CLAMP_HIGH:
        return extreme(SIM_LEAST, v[0], sim_value_cast(v[2], v[0].type));
    case SIM_CLAMP:
        return extreme(SIM_LEAST, extreme(SIM_GREATEST, v[0], sim_value_cast(v[1], v[0].type)),
                       sim_value_cast(v[2], v[0].type));
    case SIM_LOGICAL_AND:
        return truth(sim_value_is_true(v[0]) && sim_value_is_true(v[1]));
    case SIM_LOGICAL_OR:
        return truth(sim_value_is_true(v[0]) || sim_value_is_true(v[1]));
    case SIM_LOGICAL_XOR:
        return truth(sim_value_is_true(v[0]) != sim_value_is_true(v[1]));
    case SIM_LOGICAL_NOT:
        return truth(!sim_value_is_true(v[0]));
    case SIM_GREATER_OR_EQUAL:
    case SIM_GREATER:
    case SIM_LESS_OR_EQUAL:
    case SIM_LESS:
    case SIM_EQUAL:
    case SIM_NOT_EQUAL:
        return truth(compare(operation, v[0], sim_value_cast(v[1], v[0].type)));
    case SIM_SELECT:
        return sim_value_is_true(v[0]) ? v[1] : v[2];
    case SIM_REPLACE:
        return sim_value_is_true(v[1]) ? v[2] : v[0];
    default:
        return arithmetic(operation, v[0], v[1]);
    }
}

struct sim_value sim_functor_apply(const struct sim_functor *functor, const void *kept,
                                   const struct sim_value *inputs)
{
    struct sim_value v[SIM_FUNCTOR_OPERANDS] = {{.type = SIM_TYPE_NONE}};
    enum sim_operation operation = functor->operation;
    int choice;

    for (size_t i = 0; i < functor->operand_count; i++) {
        const struct sim_operand *operand = &functor->operands[i];

        v[i] = operand->is_kept
                   ? sim_value_load((const unsigned char *)kept + operand->at, operand->type)
                   : inputs[operand->at];
    }
    if (functor->has_choice) {
        memcpy(&choice, kept, sizeof(choice));
        choice &= operation == SIM_EQUAL ? 1 : 3;
        choice = operation == SIM_CLAMP_LOW && choice == 3 ? 2 : choice;
        operation = (enum sim_operation)((int)operation + choice);
    }
    if (functor->operand_count == 1) {
        v[1] = v[0];
    }
    if (operation == SIM_ADD && functor->operand_count == 3) {
        v[1] = arithmetic(SIM_MULTIPLY, v[1], v[2]);
    }
    return sim_value_cast(compute(operation, v), functor->result);
}

struct sim_value sim_functor_combine(enum sim_operation operation, struct sim_value a,
                                     struct sim_value b)
{
    const struct sim_value pair[SIM_FUNCTOR_OPERANDS] = {a, sim_value_cast(b, a.type)};

    return sim_value_cast(compute(operation, pair), a.type);
}
