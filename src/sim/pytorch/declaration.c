#include "sim/pytorch/declaration.h"

#include "common/grow.h"
#include "sim/pytorch/cxx_text.h"
#include "system/demangle.h"

#include <stdlib.h>
#include <string.h>

#define MOST_WORDS 64 /* most addresses in one array */

/* The text between the last pair of parentheses. False if the declaration does not end with one. */
static bool find_params(const char *declaration, struct sim_cxx_text *ret_params)
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
    *ret_params = (struct sim_cxx_text){at + 1, (size_t)(end - at) - 2};
    return depth == 0;
}

/* Splits off the next parameter; false if there is none, or if the brackets do not match. */
static bool next_param(struct sim_cxx_text *params, struct sim_cxx_text *ret_param)
{
    size_t length = 0;
    int depth = 0;

    while (params->length > 0 && *params->start == ' ') {
        params->start++;
        params->length--;
    }
    for (; length < params->length && (depth > 0 || params->start[length] != ','); length++) {
        char c = params->start[length];

        depth += c == '<' || c == '(' || c == '{' || c == '[';
        depth -= c == '>' || c == ')' || c == '}' || c == ']';
        if (depth < 0) {
            return false;
        }
    }
    *ret_param = (struct sim_cxx_text){params->start, length};
    params->start += length + (length < params->length);
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
static struct sim_declared read_single(const struct sim_cxx_text *type)
{
    if (type->length > 0 && type->start[type->length - 1] == '*') {
        return (struct sim_declared){1, sizeof(void *), sizeof(void *)};
    }
    for (size_t i = 0; i < sizeof(value_types) / sizeof(value_types[0]); i++) {
        if (sim_cxx_is(*type, value_types[i].name)) {
            return (struct sim_declared){0, value_types[i].bytes, value_types[i].bytes};
        }
    }
    return (struct sim_declared){0, 0, 0};
}

/* Reads a type such as std::array<char*, 3ul>. Any other type is read as a single value. */
static struct sim_declared read_type(const struct sim_cxx_text *type)
{
    const char *begin = memchr(type->start, '<', type->length);
    const char *comma = memchr(type->start, ',', type->length);
    struct sim_declared element;
    size_t count;
    char *end;

    if ((!sim_cxx_begins(*type, "std::array<") && !sim_cxx_begins(*type, "at::detail::Array<")) ||
        comma == NULL) {
        return read_single(type);
    }
    element = read_single(&(struct sim_cxx_text){begin + 1, (size_t)(comma - begin) - 1});
    count = strtoul(comma + 1, &end, 10);
    end += strspn(end, "ul");
    if (count > MOST_WORDS || *end != '>' || end + 1 != type->start + type->length) {
        return (struct sim_declared){0, 0, 0};
    }
    return (struct sim_declared){count * element.words, count * element.bytes, element.align};
}

static bool read_params(struct sim_cxx_text params, struct sim_declared **ret_declared,
                        size_t *ret_count)
{
    struct sim_declared *declared = NULL;
    bool all_known = true;
    bool any_address = false;
    struct sim_cxx_text param;
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

static bool ends_with(const struct sim_cxx_text *text, const char *suffix)
{
    size_t length = strlen(suffix);

    return text->length >= length &&
           strncmp(text->start + text->length - length, suffix, length) == 0;
}

static bool is_constant(const struct sim_cxx_text *type)
{
    static const char info[] = "at::cuda::detail::TensorInfo<";
    const char *comma = memchr(type->start, ',', type->length);
    struct sim_cxx_text element;

    if (!sim_cxx_begins(*type, info) || comma == NULL) {
        return ends_with(type, " const*");
    }
    element = (struct sim_cxx_text){type->start + strlen(info),
                                    (size_t)(comma - type->start) - strlen(info)};
    return ends_with(&element, " const");
}

uint64_t sim_declaration_constant(const char *name)
{
    char *declaration = spw_demangle(name);
    struct sim_cxx_text params, param;
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
    struct sim_cxx_text params;
    bool known;

    if (declaration == NULL) {
        return false;
    }
    known = find_params(declaration, &params) && read_params(params, ret_declared, ret_count);
    free(declaration);
    return known;
}
