#include "track/kernel_name.h"

#include <stddef.h>
#include <string.h>

enum { MOST_SEEN = 64 };

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Returns the end of the digits at `at`; *ret_number is their value, cut at 2^20. */
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

/* Returns the end of an identifier, which begins with its length at `at`. */
static const char *skip_identifier(const char *at)
{
    size_t length;

    at = skip_number(at, &length);
    return at + strnlen(at, length);
}

/* Returns the end of the digits at `at` if they are the value of an enumerator, which ends with E;
 * else `at`. */
static const char *skip_value(const char *at)
{
    size_t value;
    const char *end = skip_number(at, &value);

    return *end == 'E' ? end : at;
}

/* Returns the end of the part of a mangled name (Itanium C++ ABI, section 5.1) that begins at `at`:
 * an identifier, a literal, a template parameter, a substitution; or else one letter. So the
 * letters of identifiers are not taken for types. */
static const char *skip_part(const char *at)
{
    size_t number;

    if (is_digit(*at)) {
        return skip_identifier(at);
    }
    if (at[0] == 'L' && is_digit(at[1])) {
        /* An enumerator, or a name with internal linkage. */
        return skip_value(skip_identifier(at + 1));
    }
    if (at[0] == 'A' || (at[0] == 'L' && at[1] >= 'a' && at[1] <= 'z')) {
        /* The extent of an array, or a literal of a type of one letter: a number follows. */
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
    /* The value of an enumerator may follow the E of a nested name, too. */
    return at[0] == 'E' ? skip_value(at + 1) : at + 1;
}

/* True when the name spells out a pointer to a pointer, with qualifiers or without. */
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

/* The substitution candidates that were read so far. A mangled name writes a repeated component as
 * a number (S_, S0_), its index among them. */
struct seen {
    const char *at; /* the rest of the name */
    bool pointers[MOST_SEEN];
    size_t count;
    size_t depth;
    bool doubled; /* a pointer to a pointer was read */
};

static bool remember(struct seen *seen, bool pointer)
{
    if (seen->count == MOST_SEEN) {
        return false;
    }
    seen->pointers[seen->count++] = pointer;
    return true;
}

/* Reads a substitution: S_, then S0_, S1_ and so on in base 36. */
static bool look_up(struct seen *seen, bool *ret_pointer)
{
    size_t number = 0;

    for (seen->at++; *seen->at != '_'; seen->at++) {
        char c = *seen->at;

        if ((!is_digit(c) && !(c >= 'A' && c <= 'Z')) || number > MOST_SEEN) {
            return false;
        }
        number = (number > 0 ? (number - 1) * 36 : 0) +
                 (size_t)(is_digit(c) ? c - '0' : c - 'A' + 10) + 1;
    }
    seen->at++;
    if (number >= seen->count) {
        return false;
    }
    *ret_pointer = seen->pointers[number];
    return true;
}

/* Reads one type without templates and scopes. False for any other type, and at the end. */
static bool read_type(struct seen *seen, bool *ret_pointer)
{
    char kind = *seen->at;
    bool inner = false;

    *ret_pointer = false;
    if (kind >= 'a' && kind <= 'z' && kind != 'r' && kind != 'u') {
        seen->at++;
        return true;
    }
    if (kind == 'S') {
        return look_up(seen, ret_pointer);
    }
    if (is_digit(kind)) {
        seen->at = skip_identifier(seen->at);
        return *seen->at != 'I' && remember(seen, false);
    }
    if (kind == '\0' || strchr("PRrVK", kind) == NULL || ++seen->depth == MOST_SEEN) {
        return false;
    }
    seen->at += kind == 'P' || kind == 'R' ? 1 : strspn(seen->at, "rVK");
    if (!read_type(seen, &inner)) {
        return false;
    }
    seen->doubled = seen->doubled || (kind == 'P' && inner);
    *ret_pointer = kind == 'P' || (kind != 'R' && inner);
    return remember(seen, *ret_pointer);
}

/* True when a parameter is a pointer to a pointer whose inner pointer is written as a substitution.
 * Reads functions that are not templates, up to the first parameter that uses a template. */
static bool repeats_pointer_to_pointer(const char *name)
{
    struct seen seen = {.at = name};
    bool nested = *seen.at == 'N', pointer;

    seen.at += nested;
    seen.at += *seen.at == 'L';
    while (is_digit(*seen.at)) {
        seen.at = skip_identifier(seen.at);
        seen.at += nested && *seen.at == 'L';
        /* Each scope is a candidate, the function itself is not. */
        if (nested && is_digit(*seen.at) && !remember(&seen, false)) {
            return false;
        }
        if (!nested) {
            break;
        }
    }
    if (nested && *seen.at++ != 'E') {
        return false;
    }
    seen.depth = 0;
    while (!seen.doubled && read_type(&seen, &pointer)) {
        seen.depth = 0;
    }
    return seen.doubled;
}

bool spw_track_kernel_name_is_indirect(const char *name)
{
#define SPW_INDIRECT(part, why)                                                                    \
    if (strstr(name, part) != NULL) {                                                              \
        return true;                                                                               \
    }
#include "track/indirect.def"
#undef SPW_INDIRECT
    return strncmp(name, "_Z", 2) == 0 &&
           (has_pointer_to_pointer(name + 2) || repeats_pointer_to_pointer(name + 2));
}
