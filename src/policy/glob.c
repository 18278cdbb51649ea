#include "policy/glob.h"

#include <string.h>

/* Returns the character at *text, and moves *text past it. A byte that begins no UTF-8 sequence
 * gets a number of its own, above all characters. */
static uint32_t next_character(const char **text)
{
    const unsigned char *bytes = (const unsigned char *)*text;
    int length = bytes[0] < 0x80       ? 1
                 : bytes[0] >> 5 == 6  ? 2
                 : bytes[0] >> 4 == 14 ? 3
                 : bytes[0] >> 3 == 30 ? 4
                                       : 0;
    uint32_t code = length < 2 ? bytes[0] : bytes[0] & (0x7FU >> length);

    for (int i = 1; i < length; i++) {
        if (bytes[i] >> 6 != 2) {
            length = 0;
            break;
        }
        code = code << 6 | (bytes[i] & 0x3FU);
    }
    *text += length > 0 ? length : 1;
    return length > 0 ? code : 0x110000U + bytes[0];
}

/* --- compiling --- */

struct compiler {
    const char *at;
    struct spw_glob_token *tokens;
    size_t count;
    const char *problem;
};

static void add(struct compiler *compiler, enum spw_glob_op op, uint32_t first, uint32_t last)
{
    compiler->tokens[compiler->count++] = (struct spw_glob_token){op, first, last};
}

/* One character of a set or of the pattern, without its backslash. */
static bool read_character(struct compiler *compiler, uint32_t *ret_character)
{
    if (*compiler->at == '\\') {
        compiler->at++;
    }
    if (*compiler->at == '\0') {
        compiler->problem = "it ends in a backslash";
        return false;
    }
    *ret_character = next_character(&compiler->at);
    return true;
}

/* Compiles a set, from behind its opening bracket. A closing bracket in first place is in the
 * set. */
static bool compile_set(struct compiler *compiler)
{
    size_t head = compiler->count;
    bool negated = *compiler->at == '!' || *compiler->at == '^';
    const char *start;

    compiler->at += negated;
    start = compiler->at;
    add(compiler, SPW_GLOB_SET, 0, negated);
    while (*compiler->at != ']' || compiler->at == start) {
        uint32_t first;
        uint32_t last;

        if (*compiler->at == '\0') {
            compiler->problem = "a [ without its ]";
            return false;
        }
        if (!read_character(compiler, &first)) {
            return false;
        }
        last = first;
        if (compiler->at[0] == '-' && compiler->at[1] != ']' && compiler->at[1] != '\0') {
            compiler->at++;
            if (!read_character(compiler, &last)) {
                return false;
            }
        }
        if (last < first) {
            compiler->problem = "a set whose range runs backwards";
            return false;
        }
        add(compiler, SPW_GLOB_SPAN, first, last);
    }
    compiler->at++;
    compiler->tokens[head].first = (uint32_t)(compiler->count - head - 1);
    return true;
}

static bool compile_token(struct compiler *compiler)
{
    uint32_t character;

    switch (*compiler->at) {
    case '*': {
        size_t stars = strspn(compiler->at, "*");

        compiler->at += stars;
        add(compiler, stars > 1 ? SPW_GLOB_LONG_RUN : SPW_GLOB_RUN, 0, 0);
        return true;
    }
    case '?':
        compiler->at++;
        add(compiler, SPW_GLOB_ANY, 0, 0);
        return true;
    case '[':
        compiler->at++;
        return compile_set(compiler);
    default:
        if (!read_character(compiler, &character)) {
            return false;
        }
        add(compiler, SPW_GLOB_CHARACTER, character, character);
        return true;
    }
}

size_t spw_policy_glob_compile(const char *text, struct spw_glob_token *tokens,
                               const char **ret_problem)
{
    struct compiler compiler = {.at = text, .tokens = tokens};

    if (*text == '\0') {
        *ret_problem = "it is empty";
        return 0;
    }
    if (strlen(text) > SPW_GLOB_MAX) {
        *ret_problem = "it is longer than 256 bytes";
        return 0;
    }
    while (*compiler.at != '\0') {
        if (!compile_token(&compiler)) {
            *ret_problem = compiler.problem;
            return 0;
        }
    }
    return compiler.count;
}

/* --- matching: a set of places in the pattern, advanced character by character --- */

enum { WORD_BITS = 64, WORDS = SPW_GLOB_MAX / WORD_BITS + 1 };

/* Bit i: the tokens before i have matched. */
struct places {
    uint64_t bits[WORDS];
};

static bool has(const struct places *places, size_t place)
{
    return (places->bits[place / WORD_BITS] >> place % WORD_BITS & 1) != 0;
}

/* The number of tokens of the step at `token`. */
static size_t width(const struct spw_glob_token *token)
{
    return token->op == SPW_GLOB_SET ? 1 + token->first : 1;
}

static bool is_run(const struct spw_glob_token *token)
{
    return token->op == SPW_GLOB_RUN || token->op == SPW_GLOB_LONG_RUN;
}

/* Adds a place. If it has a run, adds the next place as well, since a run may match nothing. */
static void reach(const struct spw_glob *glob, struct places *places, size_t place)
{
    for (;; place++) {
        places->bits[place / WORD_BITS] |= UINT64_C(1) << place % WORD_BITS;
        if (place == glob->count || !is_run(&glob->tokens[place])) {
            return;
        }
    }
}

static bool in_set(const struct spw_glob_token *set, uint32_t character)
{
    bool found = false;

    for (uint32_t i = 1; i <= set->first; i++) {
        found = found || (character >= set[i].first && character <= set[i].last);
    }
    return found != (set->last == 1);
}

static bool takes(const struct spw_glob *glob, const struct spw_glob_token *token,
                  uint32_t character)
{
    bool slash = glob->kind == SPW_GLOB_PATH && character == '/';

    switch (token->op) {
    case SPW_GLOB_CHARACTER:
        return token->first == character;
    case SPW_GLOB_ANY:
    case SPW_GLOB_RUN:
        return !slash;
    case SPW_GLOB_LONG_RUN:
        return true;
    case SPW_GLOB_SET:
        return !slash && in_set(token, character);
    default:
        return false;
    }
}

/* Advances every place by this character. False when no place is left. */
static bool step(const struct spw_glob *glob, const struct places *from, uint32_t character,
                 struct places *to)
{
    uint64_t any = 0;

    memset(to, 0, sizeof(*to));
    for (size_t word = 0; word < WORDS; word++) {
        for (uint64_t bits = from->bits[word]; bits != 0; bits &= bits - 1) {
            size_t place = word * WORD_BITS + (size_t)__builtin_ctzll(bits);
            const struct spw_glob_token *token = &glob->tokens[place];

            if (place < glob->count && takes(glob, token, character)) {
                reach(glob, to, is_run(token) ? place : place + width(token));
            }
        }
    }
    for (size_t word = 0; word < WORDS; word++) {
        any |= to->bits[word];
    }
    return any != 0;
}

/* The start of a symbol's parameter list: the opening parenthesis that the last closing one
 * matches. The symbol's end when it has no parameter list. */
static const char *parameters(const char *symbol)
{
    const char *at = strrchr(symbol, ')');
    int depth = 0;

    if (at == NULL || strpbrk(at, ":>") != NULL) {
        return symbol + strlen(symbol);
    }
    for (; at > symbol; at--) {
        depth += *at == ')' ? 1 : *at == '(' ? -1 : 0;
        if (depth == 0) {
            return at;
        }
    }
    return symbol + strlen(symbol);
}

/* True when a pattern may match the rest of `name` from `at` on. */
static bool may_cut(enum spw_glob_kind kind, const char *name, const char *at)
{
    switch (kind) {
    case SPW_GLOB_PATH:
        return at[-1] == '/';
    case SPW_GLOB_DOTTED:
        return at[-1] == '.';
    case SPW_GLOB_SYMBOL:
        return at[-1] == ':' && at - name >= 2 && at[-2] == ':';
    default:
        return false;
    }
}

/* The next place behind `at` such that a pattern may match the rest of `name` from there on; NULL
 * when there is none. */
static const char *next_cut(enum spw_glob_kind kind, const char *name, const char *at)
{
    switch (kind) {
    case SPW_GLOB_PATH:
        at = strchr(at, '/');
        return at != NULL ? at + 1 : NULL;
    case SPW_GLOB_DOTTED:
        at = strchr(at, '.');
        return at != NULL ? at + 1 : NULL;
    case SPW_GLOB_SYMBOL:
        at = strstr(at > name ? at - 1 : at, "::");
        return at != NULL ? at + 2 : NULL;
    default:
        return NULL;
    }
}

bool spw_policy_glob_match(const struct spw_glob *glob, const char *name)
{
    struct places both[2] = {{{0}}};
    struct places *now = &both[0];
    struct places *next = &both[1];
    const char *end;

    if (name == NULL) {
        return false;
    }
    end = glob->kind == SPW_GLOB_SYMBOL ? parameters(name) : NULL;
    reach(glob, now, 0);
    for (const char *at = name; *at != '\0';) {
        struct places *swap = now;
        bool alive;

        if (at == end && has(now, glob->count)) {
            return true;
        }
        alive = step(glob, now, next_character(&at), next);
        now = next;
        next = swap;
        if (!alive && !may_cut(glob->kind, name, at)) {
            at = next_cut(glob->kind, name, at);
            if (at == NULL) {
                return false;
            }
        }
        if (*at != '\0' && may_cut(glob->kind, name, at)) {
            reach(glob, now, 0);
        }
    }
    return has(now, glob->count);
}
