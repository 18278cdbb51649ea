/* The parameters of the kernels of a cubin, by the kernels' names.
 *
 * A cubin has a section ".nv.info.NAME" for each kernel. Each record in this section has a format,
 * an attribute and a value. A record with the attribute KPARAM_INFO has the offset and size of one
 * parameter in the parameter buffer. NVIDIA does not document the format. It was taken from public
 * projects that read cubins, and was checked against the output of nvcc 13.0.
 *
 * Locking: none; needs no lock. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "sim/driver/code/cubin.h"

/* Offset and size of one parameter, in bytes. */
struct sim_param_place {
    uint16_t offset;
    uint16_t size;
};

struct sim_layouts;

/* Reads the layouts of all kernels with complete records. The caller frees them with
 * sim_layouts_free(). NULL if host memory is exhausted. */
struct sim_layouts *sim_layouts_read(const struct sim_cubin *cubin);

/* The kernel's parameters, in order, valid until the layouts are freed; NULL if they are not known.
 */
const struct sim_param_place *sim_layouts_find(const struct sim_layouts *layouts, const char *name,
                                               size_t *ret_count);

/* Frees the layouts. NULL is ignored. */
void sim_layouts_free(struct sim_layouts *layouts);
