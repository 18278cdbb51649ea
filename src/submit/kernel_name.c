#include "submit/kernel_name.h"

#include "system/demangle.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

static bool is_listed(const char *name)
{
#define SPW_INDIRECT(part, why)                                                                    \
    if (strstr(name, part) != NULL) {                                                              \
        return true;                                                                               \
    }
#include "submit/indirect.def"
#undef SPW_INDIRECT
    return false;
}

/* Skips the qualifiers of a pointer, as the demangler writes them. */
static const char *skip_qualifiers(const char *at)
{
    static const char *const qualifiers[] = {" const", " volatile", " __restrict__", " restrict"};
    size_t i = 0;

    while (i < sizeof(qualifiers) / sizeof(qualifiers[0])) {
        size_t length = strlen(qualifiers[i]);

        if (strncmp(at, qualifiers[i], length) == 0) {
            at += length;
            i = 0;
        } else {
            i++;
        }
    }
    return at;
}

/* True if a declaration contains a pointer to a pointer: float**, char const* const*. */
static bool has_pointer_to_pointer(const char *declaration)
{
    const char *at = strchr(declaration, '*');

    while (at != NULL && *skip_qualifiers(at + 1) != '*') {
        at = strchr(at + 1, '*');
    }
    return at != NULL;
}

bool spw_submit_kernel_name_may_be_indirect(const char *name)
{
    char *declaration;
    bool found;

    if (is_listed(name)) {
        return true;
    }
    if (!spw_demangle_is_mangled(name)) {
        return false;
    }
    declaration = spw_demangle(name);
    if (declaration == NULL) {
        return true;
    }
    found = has_pointer_to_pointer(declaration);
    free(declaration);
    return found;
}
