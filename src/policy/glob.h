/* Patterns for names. `*` is any run of characters, `?` one, `[a-c]` one of a set, `[!a-c]` one
 * outside it; a backslash takes the next character as it is. Letter case counts.
 *
 * A pattern matches a whole name, or its end from where the kind of name may be cut: after a slash
 * (PATH, where `*` and `?` do not match a slash but `**` does), a dot (DOTTED) or `::` (SYMBOL,
 * whose parameter list may be left out too). PLAIN and API names are not cut.
 *
 * A pattern is compiled once, into memory of the caller, and then only read: any number of threads
 * may match it. Matching allocates nothing and takes time linear in pattern times name. */
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

/* A compiled pattern; the tokens belong to whoever gave the memory. */
struct spw_glob {
    enum spw_glob_kind kind;
    const struct spw_glob_token *tokens;
    size_t count;
    const char *text; /* as it was written */
};

/* Compiles `text` into `tokens`, which has room for SPW_GLOB_MAX, and returns how many were used;
 * 0, with what is wrong in *ret_problem (static), when it is no pattern. */
size_t spw_policy_glob_compile(const char *text, struct spw_glob_token *tokens,
                               const char **ret_problem);

/* Whether the pattern matches; NULL, an unknown name, never does. */
bool spw_policy_glob_match(const struct spw_glob *glob, const char *name);
