/* Module images: their memory when loaded, and the names in them.
 *
 * Locking: the simulator's lock (core/lock.h) is held. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cuda.h>

#include "sim/driver/code/code.h"
#include "sim/driver/kernels/kernel.h"

/* A global variable. */
struct sim_global {
    struct sim_global *next;
    char *name;
    size_t size;
    size_t offset; /* in the module's data */
};

/* A kernel of an image; the address of the info never changes. */
struct sim_image_kernel {
    struct sim_image_kernel *next;
    struct sim_kernel_info info;
};

struct sim_image {
    unsigned int refs;
    size_t code_bytes;           /* device memory that the code takes */
    size_t data_bytes;           /* device memory that its global variables take */
    unsigned int binary_version; /* architecture of the code, 86 for 8.6; 0: that of the device */
    unsigned int ptx_version;    /* architecture that the code was compiled from; 0: that of the
                                  * device */
    bool globals_known;          /* `globals` is complete */
    struct sim_global *globals;
    struct sim_image_kernel *kernels; /* declared kernels first, in order */
    size_t declared_count;
    struct sim_code *code; /* to read parameters of kernels from; NULL: none */
};

/* Take and drop a reference; the last one frees the image. */
struct sim_image *sim_image_ref(struct sim_image *image);
void sim_image_unref(struct sim_image *image);

/* Facts about the kernel of that name. Every name except the empty one is found. NULL for the empty
 * name, or when host memory is out. */
const struct sim_kernel_info *sim_image_kernel(struct sim_image *image, const char *name);

/* The declared global variable of that name, or NULL. */
const struct sim_global *sim_image_global(const struct sim_image *image, const char *name);

/* For the readers of formats: add a kernel with the default properties, or a global variable
 * aligned to `align` bytes. NULL when host memory is out. */
struct sim_kernel_info *sim_image_add_kernel(struct sim_image *image, const char *name,
                                             size_t name_length);
struct sim_global *sim_image_add_global(struct sim_image *image, const char *name,
                                        size_t name_length, size_t size, size_t align);
