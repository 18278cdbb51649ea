#include "hook/kernel_name.h"

#include <stddef.h>
#include <string.h>

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Behind the digits at `at`, whose number is *ret_number, as far as it matters. */
static const char *skip_number(const char *at, size_t *ret_number)
{
    *ret_number = 0;
    while (is_digit(*at)) {
        if (*ret_number < 1u << 20) {
            *ret_number = *ret_number * 10 + (size_t)(*at - '0');
        }
        at++;
    }
    return at;
}

/* Behind an identifier with its length at `at`. */
static const char *skip_identifier(const char *at)
{
    size_t length;

    at = skip_number(at, &length);
    return at + strnlen(at, length);
}

/* Behind the digits at `at` if they are the value of an enumerator, which an E ends. */
static const char *skip_value(const char *at)
{
    size_t value;
    const char *end = skip_number(at, &value);

    return *end == 'E' ? end : at;
}

/* Behind what stands at `at` in a mangled name (Itanium C++ ABI, section 5.1): an identifier with
 * its length, a literal, a parameter of a template or what is written the second time; or else one
 * letter. So no letter of an identifier is taken for a type. */
static const char *skip_part(const char *at)
{
    size_t number;

    if (is_digit(*at)) {
        return skip_identifier(at);
    }
    if (at[0] == 'L' && is_digit(at[1])) {
        /* An enumerator, or a name that is not to be seen elsewhere. */
        return skip_value(skip_identifier(at + 1));
    }
    if (at[0] == 'A' || (at[0] == 'L' && at[1] >= 'a' && at[1] <= 'z')) {
        /* An array's extent; a literal of a type of one letter: no identifiers follow. */
        at += at[0] == 'L' ? 2 : 1;
        at += *at == 'n';
        return skip_number(at, &number);
    }
    if (at[0] == 'S' || at[0] == 'T') {
        at++;
        while (is_digit(*at) || (*at >= 'A' && *at <= 'Z')) {
            at++;
        }
        return *at == '_' ? at + 1 : at;
    }
    /* Behind the E of a nested name as well there may be the value of an enumerator. */
    return at[0] == 'E' ? skip_value(at + 1) : at + 1;
}

/* Whether a pointer to a pointer is named, whatever is const, volatile or restricted about it. Not
 * one whose inner pointer is written the second time. */
static bool has_pointer_to_pointer(const char *name)
{
    const char *at = name;

    while (*at != '\0') {
        if (*at == 'P') {
            at++;
            at += strspn(at, "rVK");
            if (*at == 'P') {
                return true;
            }
        } else {
            at = skip_part(at);
        }
    }
    return false;
}

bool spw_kernel_name_is_indirect(const char *name)
{
#define SPW_INDIRECT(part, why)                                                                    \
    if (strstr(name, part) != NULL) {                                                              \
        return true;                                                                               \
    }
#include "hook/indirect.def"
#undef SPW_INDIRECT
    return strncmp(name, "_Z", 2) == 0 && has_pointer_to_pointer(name + 2);
}
