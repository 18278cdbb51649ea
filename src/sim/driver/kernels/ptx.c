#include "sim/driver/kernels/ptx.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/grow.h"
#include "sim/driver/kernels/image.h"

/* A word, number or single mark of the text; length 0 at the end of the text. */
struct token {
    const char *at;
    size_t length;
};

struct reader {
    const char *rest;
    struct token token; /* the current one */
    struct sim_image *image;
};

static bool is_word_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.' || c == '$' || c == '%';
}

static const char *skip_blanks(const char *text)
{
    for (;;) {
        if (*text == ' ' || *text == '\t' || *text == '\n' || *text == '\r') {
            text++;
        } else if (text[0] == '/' && text[1] == '/') {
            text += strcspn(text, "\n");
        } else if (text[0] == '/' && text[1] == '*') {
            const char *end = strstr(text + 2, "*/");

            text = end == NULL ? text + strlen(text) : end + 2;
        } else {
            return text;
        }
    }
}

/* The end of the quoted string that begins at `text`. */
static const char *skip_string(const char *text)
{
    for (text++; *text != '\0' && *text != '"'; text++) {
        if (text[0] == '\\' && text[1] != '\0') {
            text++;
        }
    }
    return *text == '"' ? text + 1 : text;
}

static void next(struct reader *reader)
{
    const char *text = skip_blanks(reader->rest);
    const char *end = text;

    if (*text == '"') {
        end = skip_string(text);
    } else if (is_word_char(*text)) {
        while (is_word_char(*end)) {
            end++;
        }
    } else if (*text != '\0') {
        end++;
    }
    reader->token = (struct token){text, (size_t)(end - text)};
    reader->rest = end;
}

static bool is(const struct reader *reader, const char *text)
{
    return reader->token.length == strlen(text) &&
           strncmp(reader->token.at, text, reader->token.length) == 0;
}

static bool at_end(const struct reader *reader)
{
    return reader->token.length == 0;
}

static size_t number(const struct reader *reader)
{
    return strtoul(reader->token.at, NULL, 0);
}

bool sim_ptx_is_ptx(const char *text)
{
    static const char first[] = ".version";

    return strncmp(skip_blanks(text), first, sizeof(first) - 1) == 0;
}

/* Bytes of a fundamental type such as .u32 or .b8; 0 if the token is no such type. */
static size_t type_bytes(const struct reader *reader)
{
    const char *text = reader->token.at;
    size_t bits;

    if (reader->token.length < 3 || text[0] != '.' || strchr("bsuf", text[1]) == NULL) {
        return 0;
    }
    bits = strtoul(text + 2, NULL, 10);
    return bits == 8 || bits == 16 || bits == 32 || bits == 64 || bits == 128 ? bits / 8 : 0;
}

/* A declared variable: `.space [attributes] .align N .type name [dim]... [= ...]`. */
struct variable {
    struct token name;
    size_t element;
    size_t align; /* at least the element's */
    size_t size;
    bool is_array;
};

/* Skips a parenthesised list; the current token is its opening parenthesis. */
static void skip_parentheses(struct reader *reader)
{
    while (!at_end(reader) && !is(reader, ")")) {
        next(reader);
    }
    next(reader);
}

/* Reads a variable. On entry, the current token follows the state space. On return, it follows the
 * variable. */
static struct variable read_variable(struct reader *reader)
{
    struct variable variable = {0};
    bool is_pointer = false; /* .align is then the alignment of the target */

    while (reader->token.length > 0 && reader->token.at[0] == '.') {
        if (is(reader, ".align")) {
            next(reader);
            variable.align = is_pointer ? 0 : number(reader);
        } else if (is(reader, ".attribute")) {
            next(reader);
            skip_parentheses(reader);
            continue;
        } else if (is(reader, ".ptr")) {
            is_pointer = true;
        } else if (is(reader, ".v2") || is(reader, ".v4")) {
            variable.is_array = true;
            variable.size = reader->token.at[2] == '2' ? 2 : 4;
        } else if (type_bytes(reader) > 0) {
            variable.element = type_bytes(reader);
        }
        next(reader);
    }
    variable.name = reader->token;
    next(reader);
    variable.size = variable.element * (variable.size == 0 ? 1 : variable.size);
    while (is(reader, "[")) {
        next(reader);
        variable.is_array = true;
        variable.size *= is(reader, "]") ? 0 : number(reader);
        while (!at_end(reader) && !is(reader, "]")) {
            next(reader);
        }
        next(reader);
    }
    if (variable.align < variable.element) {
        variable.align = variable.element;
    }
    return variable;
}

static CUresult add_param(struct sim_kernel_info *info, const struct variable *variable)
{
    size_t align = variable->align == 0 ? 1 : variable->align;
    struct sim_param *param;

    if (!SPW_RESIZE(&info->params, info->param_count + 1)) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    param = &info->params[info->param_count++];
    param->offset = (info->param_bytes + align - 1) / align * align;
    param->size = variable->size;
    param->is_word = !variable->is_array && variable->size == sizeof(uint64_t);
    info->param_bytes = param->offset + param->size;
    return CUDA_SUCCESS;
}

/* Reads the parameters of an entry, from the opening parenthesis on. */
static CUresult read_params(struct reader *reader, struct sim_kernel_info *info)
{
    while (!at_end(reader) && !is(reader, ")")) {
        struct variable variable;
        CUresult result;

        next(reader);
        if (!is(reader, ".param")) {
            continue;
        }
        next(reader);
        variable = read_variable(reader);
        result = info->builtin != NULL ? CUDA_SUCCESS : add_param(info, &variable);
        if (result != CUDA_SUCCESS) {
            return result;
        }
    }
    next(reader);
    return CUDA_SUCCESS;
}

/* Reads the directives between the parameters of an entry and its body. */
static void read_directives(struct reader *reader, struct sim_kernel_info *info)
{
    while (!at_end(reader) && !is(reader, "{") && !is(reader, ";")) {
        if (is(reader, ".maxntid") || is(reader, ".reqntid")) {
            unsigned int threads = 1;

            do {
                next(reader);
                threads *= (unsigned int)number(reader);
                next(reader);
            } while (is(reader, ","));
            info->max_threads = threads > 0 && threads < 1024 ? threads : 1024;
        } else {
            next(reader);
        }
    }
}

/* Reads a body in braces; `info` is NULL for a device function. */
static void read_body(struct reader *reader, struct sim_kernel_info *info)
{
    size_t depth = 0;

    do {
        size_t *total = NULL;

        if (is(reader, "{")) {
            depth++;
        } else if (is(reader, "}")) {
            depth--;
        } else if (info != NULL && is(reader, ".local")) {
            total = &info->local_bytes;
        } else if (info != NULL && is(reader, ".shared")) {
            total = &info->shared_bytes;
        }
        next(reader);
        if (total != NULL) {
            *total += read_variable(reader).size;
        }
    } while (depth > 0 && !at_end(reader));
}

/* Reads a kernel, from .entry on. */
static CUresult read_entry(struct reader *reader)
{
    struct sim_kernel_info *info;
    CUresult result = CUDA_SUCCESS;

    next(reader);
    info = sim_image_add_kernel(reader->image, reader->token.at, reader->token.length);
    if (info == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    reader->image->declared_count++;
    next(reader);
    if (info->builtin == NULL) { /* replaces the facts from the name */
        free(info->declared);
        info->declared = NULL;
        info->declared_count = info->param_count = info->param_bytes = 0;
    }
    info->params_known = true;
    info->layout = info->builtin != NULL ? SPW_LAYOUT_BUILTIN : SPW_LAYOUT_PTX;
    if (is(reader, "(")) {
        result = read_params(reader, info);
    }
    read_directives(reader, info);
    if (is(reader, "{")) {
        read_body(reader, info);
    }
    return result;
}

/* Skips a device function, from .func on. */
static void skip_function(struct reader *reader)
{
    while (!at_end(reader) && !is(reader, "{") && !is(reader, ";")) {
        next(reader);
    }
    if (is(reader, "{")) {
        read_body(reader, NULL);
    }
}

/* Reads a global variable, from its state space to its semicolon. */
static CUresult read_global(struct reader *reader)
{
    struct variable variable;

    next(reader);
    variable = read_variable(reader);
    while (!at_end(reader) && !is(reader, ";")) {
        next(reader);
    }
    if (variable.name.length == 0 || variable.size == 0) {
        return CUDA_SUCCESS;
    }
    return sim_image_add_global(reader->image, variable.name.at, variable.name.length,
                                variable.size, variable.align) == NULL
               ? CUDA_ERROR_OUT_OF_MEMORY
               : CUDA_SUCCESS;
}

CUresult sim_ptx_read(const char *text, struct sim_image *image)
{
    struct reader reader = {.rest = text, .image = image};
    CUresult result = CUDA_SUCCESS;
    bool is_extern = false;

    image->globals_known = true;
    next(&reader);
    while (!at_end(&reader) && result == CUDA_SUCCESS) {
        if (is(&reader, ".entry")) {
            result = read_entry(&reader);
        } else if (is(&reader, ".func")) {
            skip_function(&reader);
        } else if ((is(&reader, ".global") || is(&reader, ".const")) && !is_extern) {
            result = read_global(&reader);
        } else {
            is_extern = is(&reader, ".extern") || (is_extern && !is(&reader, ";"));
            next(&reader);
            continue;
        }
        is_extern = false;
    }
    return result;
}
