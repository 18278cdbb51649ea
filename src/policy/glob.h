/* Patterns for names. `*` matches any run of characters, `?` one character, `[a-c]` one character
 * of a set, and `[!a-c]` one outside of it. A backslash quotes the next character. Case matters.
 *
 * A pattern matches a whole name, or an end of it that starts behind a separator. The separator is
 * a slash for PATH (where `*` and `?` do not match a slash, but `**` does), a dot for DOTTED, and
 * `::` for SYMBOL. A pattern for a SYMBOL may leave out the parameter list. PLAIN and API names
 * have no separator.
 *
 * A pattern is compiled once, into memory of the caller. After that any number of threads may use
 * it. Matching allocates nothing and takes at most time proportional to pattern times name. */
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
    SPW_GLOB_SET,      /* first: how many SPW_GLOB_SPAN follow; last: 1 for [!...] */
    SPW_GLOB_SPAN,     /* first to last */
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
    const char *text; /* the source */
};

/* Compiles `text` into `tokens`, which has room for SPW_GLOB_MAX. Returns how many were used; 0,
 * with a static string in *ret_problem, when the text is no pattern. */
size_t spw_policy_glob_compile(const char *text, struct spw_glob_token *tokens,
                               const char **ret_problem);

/* Returns true when the pattern matches. NULL, an unknown name, matches no pattern. */
bool spw_policy_glob_match(const struct spw_glob *glob, const char *name);
