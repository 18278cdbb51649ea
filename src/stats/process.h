/* Name of a process, from /proc. No locking, no allocation. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Names a program by its command line, `bytes` of zero-terminated words: the last part of the first
 * word, and of the script or module that it runs, if any ("python3 train.py"). The script is the
 * first argument, or a later one that ends in .py or follows -m. */
void spw_stats_process_name_of(const char *command, size_t bytes, char *name, size_t capacity);

/* Names the calling program in the same way. */
void spw_stats_process_name(char *name, size_t capacity);

/* Names the script or module that the calling program runs if the program is a Python interpreter
 * or the script ends in .py. Otherwise names the program. */
void spw_stats_process_program(char *name, size_t capacity);
