/* Reads the code of kernels: fat binaries, cubins, layouts of parameters. It does not know any
 * other folder of the driver.
 *
 *   code      the parameters of an image's kernels
 *   cubin     the ELF file of GPU code
 *   fatbin    containers with code for several architectures
 *   layouts   the parameters of a cubin's kernels, by name
 *   unpack    decompresses code with zstd or LZ4
 *
 * The first lookup of a kernel unpacks one cubin of the fat binary, stores the layouts of all
 * kernels of that cubin, and frees the cubin.
 *
 * Locking: the simulator's lock (core/lock.h) is held. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "sim/driver/code/cubin.h"
#include "sim/driver/code/fatbin.h"
#include "sim/driver/code/layouts.h"

struct sim_code;

/* The code that is chosen from a fat binary for a device (fatbin.h). `kept`: true if the fat binary
 * stays in memory until the code is freed; otherwise the chosen cubin is copied. NULL if there is
 * nothing to read or host memory is exhausted. */
struct sim_code *sim_code_of_fatbin(const struct sim_fatbin_choice *choice, bool kept);

/* The code of a cubin. The cubin is read immediately. NULL if host memory is exhausted. */
struct sim_code *sim_code_of_cubin(const struct sim_cubin *cubin);

/* The parameters of a kernel, in order, valid until the code is freed. NULL if the parameters are
 * not known. `code` may be NULL. */
const struct sim_param_place *sim_code_params(struct sim_code *code, const char *name,
                                              size_t *ret_count);

/* Frees the code. NULL is ignored. */
void sim_code_free(struct sim_code *code);
