/* The functions of CPython that run the companion. They are looked up in the process, because the
 * object is linked with no interpreter. No locking. */
#pragma once

#include <stdbool.h>

/* Functions in C that Python code calls with one string. */
typedef void spw_companion_function(const char *text);

struct spw_companion_functions {
    spw_companion_function *say;  /* writes a line */
    spw_companion_function *mark; /* writes to the recording */
};

/* Returns true if the calling thread holds the lock of an interpreter, and no exception is being
 * raised. */
bool spw_companion_python_runs(void);

/* Runs `code` with these names: `path` and `rules` are strings. `say` and `mark` call the functions
 * with those names. Returns false if the code raised an exception, or if the interpreter lacks a
 * function. */
bool spw_companion_python_run(const char *code, const char *path, const char *rules,
                              const struct spw_companion_functions *functions);
