/* Tables made at build time by gen_functions.py from NVIDIA's headers. Constant. */
#pragma once

#include "sim/driver/functions.h" /* generated: enum sim_fn */

/* One ABI of a function, as cuGetProcAddress finds it. */
struct sim_abi {
    const char *base;
    int version;    /* the CUDA release that introduced it, 1000 * major + 10 * minor */
    int per_thread; /* the _ptds or _ptsz variant */
    enum sim_fn fn;
    void (*address)(void);
};

/* An error code of cuda.h. */
struct sim_error {
    int code;
    const char *name;
    const char *text;
};

/* Exported name by number; ABIs in the order of base and version; error codes. */
extern const char *const sim_fn_names[SIM_FN_COUNT];
extern const struct sim_abi sim_abis[];
extern const unsigned int sim_abi_count;
extern const struct sim_error sim_errors[];
extern const unsigned int sim_error_count;
