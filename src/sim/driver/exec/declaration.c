#include "sim/driver/exec/declaration.h"

#include "common/demangle.h"
#include "common/grow.h"

#include <stdlib.h>
#include <string.h>

#define MOST_WORDS 64 /* in one array */

/* A part of a declaration. */
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

/* The text between the last pair of parentheses. False if the declaration does not end with one. */
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

/* Splits off the next parameter; false behind the last, or if the brackets do not match. */
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

/* The types of a single value other than an address; each is aligned to its size. */
static const struct value_type {
    const char *name;
    size_t bytes;
} value_types[] = {
    {"bool", 1},
    {"char", 1},
    {"signed char", 1},
    {"unsigned char", 1},
    {"short", 2},
    {"unsigned short", 2},
    {"int", 4},
    {"unsigned int", 4},
    {"long", 8},
    {"unsigned long", 8},
    {"long long", 8},
    {"unsigned long long", 8},
    {"float", 4},
    {"double", 8},
    {"__half", 2},
    {"__nv_bfloat16", 2},
    {"c10::Half", 2},
    {"c10::BFloat16", 2},
    {"c10::complex<float>", 8},
    {"c10::complex<double>", 16},
};

/* Reads a pointer or a single value. Nothing is known of any other type. */
static struct sim_declared read_single(const struct text *type)
{
    if (type->length > 0 && type->at[type->length - 1] == '*') {
        return (struct sim_declared){1, sizeof(void *), sizeof(void *)};
    }
    for (size_t i = 0; i < sizeof(value_types) / sizeof(value_types[0]); i++) {
        if (is(type, value_types[i].name)) {
            return (struct sim_declared){0, value_types[i].bytes, value_types[i].bytes};
        }
    }
    return (struct sim_declared){0, 0, 0};
}

/* Reads a std::array<char*, 3ul> or similar; any other type is read as a single value. */
static struct sim_declared read_type(const struct text *type)
{
    const char *begin = memchr(type->at, '<', type->length);
    const char *comma = memchr(type->at, ',', type->length);
    struct sim_declared element;
    size_t count;
    char *end;

    if ((!begins_with(type, "std::array<") && !begins_with(type, "at::detail::Array<")) ||
        comma == NULL) {
        return read_single(type);
    }
    element = read_single(&(struct text){begin + 1, (size_t)(comma - begin) - 1});
    count = strtoul(comma + 1, &end, 10);
    end += strspn(end, "ul");
    if (count > MOST_WORDS || *end != '>' || end + 1 != type->at + type->length) {
        return (struct sim_declared){0, 0, 0};
    }
    return (struct sim_declared){count * element.words, count * element.bytes, element.align};
}

static bool read_params(struct text params, struct sim_declared **ret_declared, size_t *ret_count)
{
    struct sim_declared *declared = NULL;
    bool all_known = true;
    bool any_address = false;
    struct text param;
    size_t count = 0;

    while (params.length > 0) {
        if (!next_param(&params, &param) || !SPW_RESIZE(&declared, count + 1)) {
            goto err_free;
        }
        declared[count] = read_type(&param);
        all_known &= declared[count].bytes > 0;
        any_address |= declared[count].words > 0;
        count++;
    }
    if (!any_address && !all_known) {
        goto err_free;
    }
    *ret_declared = declared;
    *ret_count = count;
    return true;

err_free:
    free(declared);
    return false;
}

static bool ends_with(const struct text *text, const char *suffix)
{
    size_t length = strlen(suffix);

    return text->length >= length && strncmp(text->at + text->length - length, suffix, length) == 0;
}

static bool is_constant(const struct text *type)
{
    static const char info[] = "at::cuda::detail::TensorInfo<";
    const char *comma = memchr(type->at, ',', type->length);
    struct text element;

    if (!begins_with(type, info) || comma == NULL) {
        return ends_with(type, " const*");
    }
    element = (struct text){type->at + strlen(info), (size_t)(comma - type->at) - strlen(info)};
    return ends_with(&element, " const");
}

uint64_t sim_declaration_constant(const char *name)
{
    char *declaration = spw_demangle(name);
    struct text params, param;
    uint64_t constant = 0;

    if (declaration != NULL && find_params(declaration, &params)) {
        for (unsigned int i = 0; i < 64 && next_param(&params, &param); i++) {
            constant |= (uint64_t)is_constant(&param) << i;
        }
    }
    free(declaration);
    return constant;
}

bool sim_declaration_read(const char *name, struct sim_declared **ret_declared, size_t *ret_count)
{
    char *declaration = spw_demangle(name);
    struct text params;
    bool known;

    if (declaration == NULL) {
        return false;
    }
    known = find_params(declaration, &params) && read_params(params, ret_declared, ret_count);
    free(declaration);
    return known;
}
