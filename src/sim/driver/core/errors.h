/* The error codes of cuda.h by number and by name. Constant tables, no locking. */
#pragma once

#include <stdbool.h>

#include <cuda.h>

#include "sim/driver/core/tables.h"

/* The name and text of a code, or NULL if the number is not an error code. */
const struct sim_error *sim_error_find(CUresult code);

/* Parses the name of a code, with or without CUDA_ERROR_, or a number up to 999. False if the text
 * is neither. */
bool sim_error_parse(const char *text, CUresult *ret_code);
