/* Whether there is a CUDA driver that works. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Loads libcuda.so.1 and initialises it in a child, which ends with it. False, with the reason in
 * words, when that fails. */
bool spw_cli_driver_check(char *reason, size_t capacity);
