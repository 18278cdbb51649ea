/* The parameters of a C++ kernel, read from its name.
 *
 * By the C++ ABI, the name of a kernel contains the types of all its parameters. The name therefore
 * shows which parameters are pointers or arrays of pointers. The kernel's code (layouts.h) does not
 * distinguish pointers from other words. The size of any other struct or class is not known. The
 * C++ library that the program has loaded demangles names (system/demangle.h). Without this
 * library, no parameters are known.
 *
 * Locking: the simulator's lock (core/lock.h) is held, unless stated otherwise. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One parameter. */
struct sim_declared {
    size_t words; /* number of addresses, if the parameter consists of addresses; otherwise 0 */
    size_t bytes; /* 0: not known */
    size_t align; /* in bytes, if `bytes` is known */
};

/* All parameters of a kernel, in order; the caller frees them. False if the name does not show the
 * parameters, or if a parameter has an unknown type and no parameter is an address. */
bool sim_declaration_read(const char *name, struct sim_declared **ret_declared, size_t *ret_count);

/* A bit for each of the first 64 parameters. A bit is set if the kernel can only read through the
 * parameter, which is then a pointer to constants or PyTorch's TensorInfo of constants. 0 if the
 * name does not show the parameters. */
uint64_t sim_declaration_constant(const char *name);
