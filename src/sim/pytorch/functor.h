/* Functions of elements: the functors of PyTorch's kernels.
 *
 * A functor is read from its type in a kernel's name. The known functors are the functors in
 * operation.def, alone or inside BinaryFunctor, AUnaryFunctor or BUnaryFunctor
 * (ATen/native/cuda/Loops.cuh). The numbers that a functor keeps are read from the kernel's
 * arguments. Locking: none; the functions keep no state. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "sim/pytorch/value.h"

enum sim_operation {
    SIM_COPY,
    SIM_ADD, /* a third operand, if any, is a factor of the second */
    SIM_MULTIPLY,
    SIM_DIVIDE,
    SIM_DIVIDE_DOWN,
    SIM_REMAINDER,
    SIM_GREATEST,
    SIM_LEAST,
    SIM_AND,
    SIM_OR,
    SIM_XOR,
    SIM_NOT,
    SIM_LOGICAL_AND,
    SIM_LOGICAL_OR,
    SIM_LOGICAL_XOR,
    SIM_LOGICAL_NOT,
    SIM_GREATER_OR_EQUAL, /* six comparisons in the order of PyTorch's two enumerations (4 + 2) */
    SIM_GREATER,
    SIM_LESS_OR_EQUAL,
    SIM_LESS,
    SIM_EQUAL,
    SIM_NOT_EQUAL,
    SIM_SELECT,    /* the second operand if the first is true, otherwise the third */
    SIM_REPLACE,   /* the third operand if the second is true, otherwise the first */
    SIM_CLAMP_LOW, /* three clamps, in PyTorch's order */
    SIM_CLAMP_HIGH,
    SIM_CLAMP,
    SIM_ABSOLUTE,
    SIM_NEGATE,
    SIM_FLOOR,
    SIM_CEIL,
    SIM_TRUNCATE,
    SIM_ROUND,
    SIM_RECIPROCAL,
    SIM_ROOT,
    SIM_ROOT_RECIPROCAL,
    SIM_SINE,
    SIM_COSINE,
    SIM_TANGENT_HYPERBOLIC,
    SIM_EXPONENTIAL,
    SIM_LOGARITHM,
    SIM_POWER,
    SIM_SQUARE, /* three powers, in the order of lambdas (number_power()) */
    SIM_CUBE,
    SIM_SQUARE_RECIPROCAL,
    SIM_TRUNCATED_REMAINDER, /* with the sign of the first operand */
    SIM_ANGLE,
    SIM_SHIFT_LEFT,
    SIM_SHIFT_RIGHT,
    SIM_SQUARED_DIFFERENCE,
    SIM_SIGN,
    SIM_SIGMOID,
    SIM_GATED, /* the sigmoid times the value */
    SIM_LOGARITHM_OF_NEXT,
    SIM_EXPONENTIAL_LESS_ONE,
    SIM_LOGARITHM_TO_TWO,
    SIM_ERROR_FUNCTION,
};

enum { SIM_FUNCTOR_OPERANDS = 3, SIM_FUNCTOR_INPUTS = 3 };

/* One operand: an input, or a number that the functor keeps. */
struct sim_operand {
    bool is_kept;
    enum sim_type type;
    size_t at; /* the number of the input, or the offset of the kept number */
};

struct sim_functor {
    enum sim_operation operation;
    bool has_choice; /* the first kept number is an int to add to `operation` */
    struct sim_operand operands[SIM_FUNCTOR_OPERANDS];
    size_t operand_count;
    enum sim_type inputs[SIM_FUNCTOR_INPUTS];
    size_t input_count;
    enum sim_type result;
    size_t bytes; /* of the functor */
    size_t align;
    bool is_lambda;
};

/* Reads the type of a functor. False if the type is not known. */
bool sim_functor_read(struct sim_cxx_text type, struct sim_functor *ret_functor);

/* Bytes of the functor. `has_pointer`: true if the functor is a lambda with a pointer that the
 * compiler added. */
size_t sim_functor_bytes(const struct sim_functor *functor, bool has_pointer);

/* True if an argument of `size` bytes may be the functor. */
bool sim_functor_fits(const struct sim_functor *functor, size_t size);

/* The result of a functor for inputs of its types. `kept`: the numbers that the functor keeps. */
struct sim_value sim_functor_apply(const struct sim_functor *functor, const void *kept,
                                   const struct sim_value *inputs);

/* The result of an operation on two values, in the type of `a`. */
struct sim_value sim_functor_combine(enum sim_operation operation, struct sim_value a,
                                     struct sim_value b);
