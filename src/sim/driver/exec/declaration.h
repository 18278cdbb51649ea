/* The parameters of a C++ kernel, read from its name.
 *
 * By the C++ ABI the names of kernels contain the types of all parameters. So pointers and arrays
 * of them can be told from other words, which not even the code does (layouts.h), and be looked at
 * where they are given; of any other struct or class not even the size is known. Names are turned
 * into text by the C++ library that the program has loaded (common/demangle.h); without it they
 * tell nothing.
 *
 * Locking: the simulator's lock (core/lock.h) is held, unless said otherwise. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One parameter. */
struct sim_declared {
    size_t words; /* addresses that it consists of; 0: it is anything else */
    size_t bytes; /* 0: not known */
    size_t align; /* in bytes, if `bytes` is known */
};

/* All parameters of a kernel in their order, to be freed by the caller. False if the name tells
 * nothing, or of no address although there are parameters of unknown type. */
bool sim_declaration_read(const char *name, struct sim_declared **ret_declared, size_t *ret_count);

/* A bit for each of the first 64 parameters that lead only to memory that the kernel reads:
 * pointers to what is constant, and PyTorch's TensorInfo of it. 0 if the name tells nothing. */
uint64_t sim_declaration_constant(const char *name);
