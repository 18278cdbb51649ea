/* Tables made at build time by gen_functions.py from NVIDIA's headers. Constant. */
#pragma once

#include "sim/driver/core/functions.h" /* generated: enum sim_fn */

/* An error code of cuda.h. */
struct sim_error {
    int code;
    const char *name;
    const char *text;
};

/* The exported names of the functions, by number, and all error codes. */
extern const char *const sim_fn_names[SIM_FN_COUNT];
extern const struct sim_error sim_errors[];
extern const unsigned int sim_error_count;
