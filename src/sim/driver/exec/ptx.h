/* The declarations of a PTX module (NVIDIA's PTX ISA): entries with their parameters, local and
 * shared memory, and global variables. Instructions are skipped.
 *
 * Locking: none needed. */
#pragma once

#include <stdbool.h>

#include <cuda.h>

struct sim_image;

/* Whether the text is PTX: its first directive is .version. Reads no further than it has to. */
bool sim_ptx_is_ptx(const char *text);

/* Adds what the text declares to the image. What it does not understand is skipped.
 * CUDA_ERROR_OUT_OF_MEMORY. */
CUresult sim_ptx_read(const char *text, struct sim_image *image);
