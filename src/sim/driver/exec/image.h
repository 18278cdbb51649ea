/* Module images: the memory that loading one takes, and the names in it.
 *
 * Known formats are PTX text, cubins (ELF) and fat binaries; of others only what the caller says is
 * known, and any name is accepted.
 *
 * Locking: the simulator's lock (core/lock.h) is held. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cuda.h>

#include "sim/driver/code/code.h"
#include "sim/driver/exec/kernel.h"

/* A global variable. */
struct sim_global {
    struct sim_global *next;
    char *name;
    size_t size;
    size_t offset; /* in the module's data */
};

/* A kernel of an image; the info stays where it is. */
struct sim_image_kernel {
    struct sim_image_kernel *next;
    struct sim_kernel_info info;
};

struct sim_image {
    unsigned int refs;
    size_t code_bytes;           /* device memory that the code takes */
    size_t data_bytes;           /* and its global variables */
    unsigned int binary_version; /* architecture of the code, 86 for 8.6; 0: that of the device */
    unsigned int ptx_version;    /* architecture that it was compiled from; 0: likewise */
    bool globals_known;          /* no others than these exist */
    struct sim_global *globals;
    struct sim_image_kernel *kernels; /* declared ones first, in their order */
    size_t declared_count;
    struct sim_code *code; /* knows the parameters of kernels; NULL: of none */
};

/* The size of an image that comes without one. */
#define SIM_IMAGE_ANY_SIZE SIZE_MAX

/* Reads an image; a reference. If the data are `kept` for as long as it lives, they are read when
 * that is needed, else what may be needed is copied. CUDA_ERROR_INVALID_VALUE for NULL,
 * CUDA_ERROR_INVALID_IMAGE for a damaged cubin, CUDA_ERROR_NO_BINARY_FOR_GPU for code that runs on
 * other devices only, CUDA_ERROR_OUT_OF_MEMORY. */
CUresult sim_image_read(const void *data, size_t size, bool kept, struct sim_image **ret_image);

/* The content of a file, to be freed by the caller. CUDA_ERROR_FILE_NOT_FOUND. */
CUresult sim_image_read_file(const char *path, void **ret_data, size_t *ret_size);

/* Takes a reference; drops one, and frees the image with the last. */
struct sim_image *sim_image_ref(struct sim_image *image);
void sim_image_unref(struct sim_image *image);

/* Facts about the kernel of that name. Every name that is not empty exists. NULL for an empty one,
 * or when host memory is out. */
const struct sim_kernel_info *sim_image_kernel(struct sim_image *image, const char *name);

/* The declared global variable of that name, or NULL. */
const struct sim_global *sim_image_global(const struct sim_image *image, const char *name);

/* For the readers of formats: adds a kernel with the default properties, or a global variable
 * placed at `align`. NULL when host memory is out. */
struct sim_kernel_info *sim_image_add_kernel(struct sim_image *image, const char *name,
                                             size_t name_length);
struct sim_global *sim_image_add_global(struct sim_image *image, const char *name,
                                        size_t name_length, size_t size, size_t align);
