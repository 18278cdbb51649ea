/* The parameters of a C++ kernel, read from its name.
 *
 * By the C++ ABI the name of a kernel contains the types of all its parameters. Pointers and arrays
 * of pointers are therefore known, while the code (layouts.h) does not distinguish them from other
 * words. Of any other struct or class, not even the size is known. The C++ library that the program
 * has loaded demangles names (common/demangle.h); without it nothing is known.
 *
 * Locking: the simulator's lock (core/lock.h) is held, unless stated otherwise. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One parameter. */
struct sim_declared {
    size_t words; /* number of addresses that it consists of; 0: another type */
    size_t bytes; /* 0: not known */
    size_t align; /* in bytes, if `bytes` is known */
};

/* All parameters of a kernel, in order; the caller frees them. False if the name has no known
 * parameters, or has parameters of unknown type and no address. */
bool sim_declaration_read(const char *name, struct sim_declared **ret_declared, size_t *ret_count);

/* A bit for each of the first 64 parameters through which the kernel can only read: pointers to
 * constants, and PyTorch's TensorInfo of constants. 0 if the name has no known parameters. */
uint64_t sim_declaration_constant(const char *name);
