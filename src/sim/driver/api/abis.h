/* The table behind cuGetProcAddress, made at build time by gen_functions.py. Constant. */
#pragma once

#include "sim/driver/core/functions.h" /* generated: enum sim_fn */

/* One ABI of a function, as cuGetProcAddress finds it. */
struct sim_abi {
    const char *base;
    int version;    /* the CUDA release that introduced the ABI, 1000 * major + 10 * minor */
    int per_thread; /* nonzero for the _ptds or _ptsz variant */
    enum sim_fn fn;
    void (*address)(void);
};

/* All ABIs, sorted by base, then by version. */
extern const struct sim_abi sim_abis[];
extern const unsigned int sim_abi_count;
