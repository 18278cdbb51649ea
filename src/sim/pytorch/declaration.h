/* The parameters of a C++ kernel, read from its name.
 *
 * By the C++ ABI the name of a kernel contains the types of all its parameters. The name therefore
 * shows which parameters are pointers or arrays of pointers; the code (layouts.h) does not
 * distinguish these from other words. The size of any other struct or class is not known. The C++
 * library that the program has loaded demangles names (system/demangle.h); without it nothing is
 * known.
 *
 * Locking: the simulator's lock (core/lock.h) is held, unless stated otherwise. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One parameter. */
struct sim_declared {
    size_t words; /* number of addresses, if it consists of addresses; otherwise 0 */
    size_t bytes; /* 0: not known */
    size_t align; /* in bytes, if `bytes` is known */
};

/* All parameters of a kernel, in order; the caller frees them. False if the name does not show the
 * parameters, or if one has an unknown type and none is an address. */
bool sim_declaration_read(const char *name, struct sim_declared **ret_declared, size_t *ret_count);

/* A bit for each of the first 64 parameters through which the kernel can only read: pointers to
 * constants, and PyTorch's TensorInfo of constants. 0 if the name does not show the parameters. */
uint64_t sim_declaration_constant(const char *name);
