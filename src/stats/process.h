/* The name of a process. No locking, no allocation. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Names a program by its command line, which consists of zero-terminated words, `bytes` in all. The
 * name is the last path component of the first word, followed by that of the script or module that
 * the program runs, if any ("python3 train.py"). The script is the first argument, or a later
 * argument that ends in .py or follows -m. */
void spw_stats_process_name_of(const char *command, size_t bytes, char *name, size_t capacity);

/* Names the calling program in the same way, from /proc. */
void spw_stats_process_name(char *name, size_t capacity);

/* If the calling program is a Python interpreter, or its script ends in .py, names the script or
 * module. Otherwise names the program. */
void spw_stats_process_program(char *name, size_t capacity);
