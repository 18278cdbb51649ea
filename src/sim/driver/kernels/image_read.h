/* Reads images.
 *
 * Known formats are PTX text, cubins (ELF) and fat binaries. An image of another format accepts any
 * name.
 *
 * Locking: the simulator's lock (core/lock.h) is held. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cuda.h>

#include "sim/driver/kernels/image.h"

/* The size of an image of unknown size. */
#define SIM_IMAGE_ANY_SIZE SIZE_MAX

/* Reads an image and returns a reference. `kept`: true if the data outlive the image and can be
 * read later; otherwise the required part of the data is copied. CUDA_ERROR_INVALID_VALUE for NULL,
 * CUDA_ERROR_INVALID_IMAGE for a damaged cubin, CUDA_ERROR_NO_BINARY_FOR_GPU for code that runs
 * only on other devices, CUDA_ERROR_OUT_OF_MEMORY. */
CUresult sim_image_read(const void *data, size_t size, bool kept, struct sim_image **ret_image);

/* Reads a file. The caller frees the content. CUDA_ERROR_FILE_NOT_FOUND. */
CUresult sim_image_read_file(const char *path, void **ret_data, size_t *ret_size);
