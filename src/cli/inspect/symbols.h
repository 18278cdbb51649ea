/* Finds the names of native functions in the symbol tables of library files, and demangles C++
 * names. One thread. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* The libraries that have been read so far. Initialize it with {0}. */
struct spw_cli_symbols {
    struct spw_cli_symbols_file *files;
    size_t count;
};

/* Looks up the function at an offset from the load address of a library, in the library's symbol
 * table. Returns the mangled name, which the caller frees, or NULL if the function is not known.
 * `build_id` (hexadecimal) must match the file; "" skips this check. */
char *spw_cli_symbols_find(struct spw_cli_symbols *names, const char *library, const char *build_id,
                           uint64_t offset);

/* Demangles a name. Returns a copy of the name if it cannot be demangled, and NULL if memory runs
 * out. The caller frees the result. */
char *spw_cli_symbols_readable(const char *symbol);

/* Frees everything. */
void spw_cli_symbols_fini(struct spw_cli_symbols *names);
