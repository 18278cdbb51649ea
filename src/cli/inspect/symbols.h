/* Names of native functions: what the process could not tell itself, out of the files of its
 * libraries, and C++ names in readable form. One thread. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* The libraries that were opened; begins as {0}. */
struct spw_cli_symbols {
    struct spw_cli_symbols_file *files;
    size_t count;
    char *(*demangle)(const char *, char *, size_t *, int *); /* NULL: not tried or not there */
    void *library;
};

/* The function at an offset from where a library is loaded, by the library's symbol table if it was
 * not stripped; NULL when it cannot be told. `build_id`, in hexadecimal, must be the file's own, ""
 * when it is not known. The text is mangled; the caller frees it. */
char *spw_cli_symbols_find(struct spw_cli_symbols *names, const char *library, const char *build_id,
                           uint64_t offset);

/* The readable form of a mangled name, or a copy of it; NULL without memory. The caller frees it.
 */
char *spw_cli_symbols_readable(struct spw_cli_symbols *names, const char *symbol);

/* Closes everything. */
void spw_cli_symbols_fini(struct spw_cli_symbols *names);
