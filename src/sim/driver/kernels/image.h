/* Module images: the memory that a loaded image takes, and the names that it declares.
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
    unsigned int binary_version; /* architecture of the code, 86 for 8.6; 0: the device's */
    unsigned int ptx_version;    /* architecture that the code was compiled from; 0: the device's */
    bool globals_known;          /* `globals` is complete */
    struct sim_global *globals;
    struct sim_image_kernel *kernels; /* declared kernels first, in order */
    size_t declared_count;
    struct sim_code *code; /* source of the kernels' parameters; NULL: none */
};

/* Take and drop a reference; the last one frees the image. */
struct sim_image *sim_image_ref(struct sim_image *image);
void sim_image_unref(struct sim_image *image);

/* Facts about the kernel of that name. Every name except the empty name is found. NULL for the
 * empty name, or when host memory is exhausted. */
const struct sim_kernel_info *sim_image_kernel(struct sim_image *image, const char *name);

/* The declared global variable of that name, or NULL. */
const struct sim_global *sim_image_global(const struct sim_image *image, const char *name);

/* Add a kernel with the default properties, or a global variable aligned to `align` bytes. Only the
 * code that reads image formats calls these functions. NULL if host memory is exhausted. */
struct sim_kernel_info *sim_image_add_kernel(struct sim_image *image, const char *name,
                                             size_t name_length);
struct sim_global *sim_image_add_global(struct sim_image *image, const char *name,
                                        size_t name_length, size_t size, size_t align);
