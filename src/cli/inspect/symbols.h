/* Names of native functions from the symbol tables of library files, and demangled C++ names. One
 * thread. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* The libraries read so far; starts as {0}. */
struct spw_cli_symbols {
    struct spw_cli_symbols_file *files;
    size_t count;
};

/* The mangled name of the function at an offset from a library's load address, from its symbol
 * table; NULL when it is not known. `build_id` (hexadecimal) must match the file; "" skips the
 * check. The caller frees the result. */
char *spw_cli_symbols_find(struct spw_cli_symbols *names, const char *library, const char *build_id,
                           uint64_t offset);

/* The demangled form of a name, or a copy of the name; NULL when there is no memory. The caller
 * frees the result. */
char *spw_cli_symbols_readable(const char *symbol);

/* Frees everything. */
void spw_cli_symbols_fini(struct spw_cli_symbols *names);
