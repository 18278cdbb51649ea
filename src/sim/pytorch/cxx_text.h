/* Parts of demangled C++ names. Locking: none; the functions keep no state. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* A part of a longer text. */
struct sim_cxx_text {
    const char *start;
    size_t length;
};

enum { SIM_CXX_ARGUMENTS = 16 };

/* A list in brackets, split at its commas. */
struct sim_cxx_list {
    struct sim_cxx_text items[SIM_CXX_ARGUMENTS];
    size_t count; /* items without room are left out */
};

/* A name with its lists. In `void at::native::f<int, X>(long)`, the name is f, the arguments are
 * int and X, and the parameter is long. For a lambda, the parameters belong to the lambda, and the
 * name and the arguments belong to the function that contains the lambda. */
struct sim_cxx_entity {
    struct sim_cxx_text name;
    struct sim_cxx_list arguments;  /* of the template */
    struct sim_cxx_list parameters; /* of the function */
    bool is_lambda;
};

/* A whole string. */
struct sim_cxx_text sim_cxx_text(const char *text);

/* True if a text is equal to, or begins with, a string. */
bool sim_cxx_is(struct sim_cxx_text text, const char *other);
bool sim_cxx_begins(struct sim_cxx_text text, const char *prefix);

/* Reads a text. False if the text has no name. */
bool sim_cxx_read(struct sim_cxx_text text, struct sim_cxx_entity *ret_entity);
