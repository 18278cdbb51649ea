/* Element types of tensors, and their values. Locking: none; the functions keep no state. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/pytorch/cxx_text.h"

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

/* A value. It is stored in `f` if the type is a floating type, otherwise in `i`. */
struct sim_value {
    enum sim_type type;
    int64_t i;
    double f;
};

/* The type of that name in C++: "float", "c10::Half". NONE for any other text. */
enum sim_type sim_type_named(struct sim_cxx_text name);

/* The type with that number in PyTorch (c10/core/ScalarType.h); NONE if it is not supported. */
enum sim_type sim_type_numbered(unsigned int number);

/* Bytes of an element; 0 for NONE. */
size_t sim_type_size(enum sim_type type);
bool sim_type_is_float(enum sim_type type);

/* The type in which PyTorch computes with elements of a type: float for the half types
 * (ATen/OpMathType.h). */
enum sim_type sim_type_to_compute(enum sim_type type);

/* Reads and writes an element; the address need not be aligned. */
struct sim_value sim_value_load(const void *from, enum sim_type type);
void sim_value_store(void *to, struct sim_value value);

/* Converts a value to another type, rounded as C does. */
struct sim_value sim_value_cast(struct sim_value value, enum sim_type type);

/* A value of a type, converted from a number. */
struct sim_value sim_value_of(enum sim_type type, double number);

/* The number as a double; exact except for integers beyond 2^53. */
double sim_value_number(struct sim_value value);
bool sim_value_is_true(struct sim_value value);

/* Compares values of the same type: -1, 0 or 1 if a is less than, equal to or greater than b; 2 if
 * one is a NaN. */
int sim_value_compare(struct sim_value a, struct sim_value b);
