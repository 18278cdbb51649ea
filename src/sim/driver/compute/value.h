/* Element types of tensors and their values. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/driver/compute/cxx_text.h"

enum sim_type {
    SIM_TYPE_NONE, /* not known */
    SIM_TYPE_BOOL,
    SIM_TYPE_U8,
    SIM_TYPE_I8,
    SIM_TYPE_I16,
    SIM_TYPE_I32,
    SIM_TYPE_I64,
    SIM_TYPE_F16,
    SIM_TYPE_BF16,
    SIM_TYPE_F32,
    SIM_TYPE_F64,
};

/* A value of a type: of a floating one in f, of another one in i. */
struct sim_value {
    enum sim_type type;
    int64_t i;
    double f;
};

/* The type of that name in C++: "float", "c10::Half". NONE for any other text. */
enum sim_type sim_type_named(struct sim_cxx_text name);

/* The type that PyTorch numbers so (c10/core/ScalarType.h); NONE for those not supported. */
enum sim_type sim_type_numbered(unsigned int number);

/* Bytes of an element; of NONE 0. */
size_t sim_type_size(enum sim_type type);
bool sim_type_is_float(enum sim_type type);

/* The type in which PyTorch computes with a type: float for the half ones
 * (ATen/OpMathType.h). */
enum sim_type sim_type_to_compute(enum sim_type type);

/* Reads and writes an element; the address need not be aligned. */
struct sim_value sim_value_load(const void *from, enum sim_type type);
void sim_value_store(void *to, struct sim_value value);

/* The same value in another type, rounded as C does. */
struct sim_value sim_value_cast(struct sim_value value, enum sim_type type);

/* A value of a type from a number. */
struct sim_value sim_value_of(enum sim_type type, double number);

/* The number, as a double; exact but for integers beyond 2^53. */
double sim_value_number(struct sim_value value);
bool sim_value_is_true(struct sim_value value);

/* -1, 0 or 1 as a is less than, equal to or greater than b, of the same type; 2 if one is not a
 * number. */
int sim_value_compare(struct sim_value a, struct sim_value b);
