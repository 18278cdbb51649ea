/* Patterns for names. `*` matches any run of characters, `?` matches one character, `[a-c]` matches
 * one character of a set, and `[!a-c]` matches one character outside of the set. A backslash quotes
 * the next character. Case matters.
 *
 * A pattern matches a whole name, or the end of a name if that end begins behind a separator. The
 * separator of a PATH is a slash. In a PATH, `*` and `?` do not match a slash, but `**` does. The
 * separator of a DOTTED name is a dot, and that of a SYMBOL is `::`. A pattern for a SYMBOL may
 * omit the parameter list. PLAIN and API names have no separator.
 *
 * A pattern is compiled once, into memory of the caller. Any number of threads may then use it.
 * Matching allocates nothing. Its time is at most proportional to the product of the lengths of
 * pattern and name. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SPW_GLOB_MAX = 256 }; /* most bytes of a pattern */

enum spw_glob_kind {
    SPW_GLOB_PLAIN,
    SPW_GLOB_API,
    SPW_GLOB_PATH,
    SPW_GLOB_DOTTED,
    SPW_GLOB_SYMBOL
};

enum spw_glob_op {
    SPW_GLOB_CHARACTER, /* first: the character */
    SPW_GLOB_ANY,
    SPW_GLOB_RUN,      /* * */
    SPW_GLOB_LONG_RUN, /* ** */
    SPW_GLOB_SET,      /* first: the number of SPW_GLOB_SPAN that follow; last: 1 for [!...] */
    SPW_GLOB_SPAN,     /* the characters from first to last */
};

/* One step of a compiled pattern. */
struct spw_glob_token {
    enum spw_glob_op op;
    uint32_t first;
    uint32_t last;
};

/* A compiled pattern. The caller owns the tokens. */
struct spw_glob {
    enum spw_glob_kind kind;
    const struct spw_glob_token *tokens;
    size_t count;
    const char *text; /* the source text */
};

/* Compiles `text` into `tokens`, which must have room for SPW_GLOB_MAX tokens. Returns the number
 * of tokens. If the text is not a valid pattern, returns 0 and sets *ret_problem to a static
 * string. */
size_t spw_policy_glob_compile(const char *text, struct spw_glob_token *tokens,
                               const char **ret_problem);

/* Returns true if the pattern matches. NULL stands for an unknown name, which no pattern
 * matches. */
bool spw_policy_glob_match(const struct spw_glob *glob, const char *name);
