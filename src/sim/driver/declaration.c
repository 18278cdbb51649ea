#include "sim/driver/declaration.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define MANGLED_PREFIX "_Z"
#define MOST_WORDS     64 /* in one array */

typedef char *demangle_function(const char *name, char *buffer, size_t *length, int *status);

static _Atomic(demangle_function *) demangle;

void sim_declaration_start(void)
{
    demangle_function *found = NULL;
    void *library;

    if (demangle != NULL) {
        return;
    }
    library = dlopen("libstdc++.so.6", RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
    if (library != NULL) {
        *(void **)&found = dlsym(library, "__cxa_demangle");
        demangle = found;
    }
}

/* A stretch of a declaration. */
struct text {
    const char *at;
    size_t length;
};

static bool begins_with(const struct text *text, const char *prefix)
{
    return text->length >= strlen(prefix) && strncmp(text->at, prefix, strlen(prefix)) == 0;
}

static bool is(const struct text *text, const char *word)
{
    return text->length == strlen(word) && begins_with(text, word);
}

/* What stands between the last pair of parentheses; false if the declaration does not end with
 * one. */
static bool find_params(const char *declaration, struct text *ret_params)
{
    const char *end = declaration + strlen(declaration);
    const char *at = end;
    size_t depth = 0;

    if (end == declaration || end[-1] != ')') {
        return false;
    }
    do {
        at--;
        depth += *at == ')';
        depth -= *at == '(';
    } while (depth > 0 && at > declaration);
    *ret_params = (struct text){at + 1, (size_t)(end - at) - 2};
    return depth == 0;
}

/* Cuts the next parameter off; false behind the last, or if the brackets do not match. */
static bool next_param(struct text *params, struct text *ret_param)
{
    size_t length = 0;
    int depth = 0;

    while (params->length > 0 && *params->at == ' ') {
        params->at++;
        params->length--;
    }
    for (; length < params->length && (depth > 0 || params->at[length] != ','); length++) {
        char c = params->at[length];

        depth += c == '<' || c == '(' || c == '{' || c == '[';
        depth -= c == '>' || c == ')' || c == '}' || c == ']';
        if (depth < 0) {
            return false;
        }
    }
    *ret_param = (struct text){params->at, length};
    params->at += length + (length < params->length);
    params->length -= length + (length < params->length);
    return length > 0 && depth == 0;
}

/* How many addresses a std::array<char*, 3ul> or its like holds; 0 for any other type. */
static size_t array_words(const struct text *param)
{
    const char *comma;
    size_t count;
    char *end;

    if (!begins_with(param, "std::array<") && !begins_with(param, "at::detail::Array<")) {
        return 0;
    }
    comma = memchr(param->at, ',', param->length);
    if (comma == NULL || comma[-1] != '*') {
        return 0;
    }
    count = strtoul(comma + 1, &end, 10);
    end += strspn(end, "ul");
    return count <= MOST_WORDS && end + 1 == param->at + param->length && *end == '>' ? count : 0;
}

static size_t words_of(const struct text *param)
{
    return param->at[param->length - 1] == '*' ? 1 : array_words(param);
}

/* Whether the type is one that holds no address. */
static bool is_number(const struct text *param)
{
    static const char *const types[] = {
        "bool",        "char",
        "signed char", "unsigned char",
        "short",       "unsigned short",
        "int",         "unsigned int",
        "long",        "unsigned long",
        "float",       "double",
        "long long",   "unsigned long long",
    };

    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        if (is(param, types[i])) {
            return true;
        }
    }
    return false;
}

static bool read_params(struct text params, struct sim_declared **ret_declared, size_t *ret_count)
{
    struct sim_declared *declared = NULL;
    bool all_known = true;
    struct text param;
    size_t count = 0;

    for (size_t number = 0; params.length > 0; number++) {
        struct sim_declared *grown;
        size_t words;

        if (!next_param(&params, &param)) {
            goto err_free;
        }
        words = words_of(&param);
        all_known &= words > 0 || is_number(&param);
        if (words == 0) {
            continue;
        }
        grown = realloc(declared, (count + 1) * sizeof(*declared));
        if (grown == NULL) {
            goto err_free;
        }
        declared = grown;
        declared[count++] = (struct sim_declared){number, words};
    }
    if (count == 0 && !all_known) {
        goto err_free;
    }
    *ret_declared = declared;
    *ret_count = count;
    return true;

err_free:
    free(declared);
    return false;
}

bool sim_declaration_read(const char *name, struct sim_declared **ret_declared, size_t *ret_count)
{
    char *declaration;
    struct text params;
    bool known;
    int status;

    if (demangle == NULL || strncmp(name, MANGLED_PREFIX, strlen(MANGLED_PREFIX)) != 0) {
        return false;
    }
    declaration = demangle(name, NULL, NULL, &status);
    if (declaration == NULL) {
        return false;
    }
    known = find_params(declaration, &params) && read_params(params, ret_declared, ret_count);
    free(declaration);
    return known;
}
