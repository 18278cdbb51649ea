/* Kernels of PyTorch and CUB whose results are computed. It does not know streams.
 *
 *   computation   finds the computation for a kernel's name
 *   cub           kernels of CUB: sums, selections, runs
 *   cxx_text      the parts of a demangled C++ name
 *   declaration   the parameters of a kernel, from its C++ name
 *   elementwise   kernels on each element of tensors
 *   functor       the functions that kernels apply to elements
 *   indexing      kernels that read or write at given indices
 *   kind          kinds of kernels, and the facts in their names
 *   operation     operations on elements, by name
 *   reduce        kernels that reduce dimensions
 *   sorting       kernels that sort or that select the greatest elements
 *   strides       layouts of tensors among the arguments
 *   tensors       kernels on whole tensors, such as running sums
 *   value         element types and values
 *
 * A kernel is identified by its name, which contains its types and functors, and by the layout of
 * its arguments. The kernel's code is not read. Small launches are computed, so that the program
 * makes the same decisions as in a real run, such as how many elements a mask selects or whether a
 * sequence ends. A launch with unexpected arguments is not computed.
 *
 * Locking: the simulator's lock (core/lock.h) is held. */
#pragma once

#include "sim/driver/compute/call.h"

struct sim_computation;

/* The computation of the kernel with this mangled name; the caller frees the computation. NULL if
 * the kernel is not known. */
struct sim_computation *sim_computation_read(const char *name);

/* Computes a launch if the launch is small enough. */
enum sim_outcome_of_call sim_computation_run(const struct sim_computation *computation,
                                             const struct sim_call *call);

/* The bytes that a launch reads and writes; 0: not known. If they are known, writes whether
 * neighbouring elements of a tensor lie apart from each other. */
uint64_t sim_computation_bytes(const struct sim_computation *computation,
                               const struct sim_call *call, bool *ret_gaps);
