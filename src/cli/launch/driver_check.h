/* A test for a working CUDA driver. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Loads libcuda.so.1 and calls cuInit in a child process, because a broken driver may crash. On
 * failure returns false and writes the reason. */
bool spw_cli_driver_check(char *reason, size_t capacity);
