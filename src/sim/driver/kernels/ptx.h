/* The declarations of a PTX module (NVIDIA's PTX ISA): entries with their parameters, local and
 * shared memory, and global variables. Instructions are skipped.
 *
 * Locking: none needed. */
#pragma once

#include <stdbool.h>

#include <cuda.h>

struct sim_image;

/* True if the text is PTX, which means that its first directive is .version. Reads no further than
 * necessary. */
bool sim_ptx_is_ptx(const char *text);

/* Adds the declarations of the text to the image. Unknown directives are skipped.
 * CUDA_ERROR_OUT_OF_MEMORY. */
CUresult sim_ptx_read(const char *text, struct sim_image *image);
