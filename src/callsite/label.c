#include "callsite/label.h"

#include "common/path.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { OPERATOR = 80 };

/* A label that is being written. */
struct label {
    char *text;
    size_t capacity;
    size_t used;
};

static void append(struct label *label, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void append(struct label *label, const char *format, ...)
{
    va_list arguments;
    int length;

    va_start(arguments, format);
    length = vsnprintf(label->text + label->used, label->capacity - label->used, format, arguments);
    va_end(arguments);
    label->used += length > 0 ? (size_t)length : 0;
    label->used = label->used < label->capacity ? label->used : label->capacity - 1;
}

static const char *last_part(const char *path)
{
    return path == NULL ? "?" : spw_path_name(path);
}

/* True for code that a user types: a cell of IPython, the prompt, python -c. File names of
 * generated code also begin with '<'. */
static bool is_typed(const struct spw_python_frame *frame)
{
    return strncmp(frame->file, "<ipython-input", strlen("<ipython-input")) == 0 ||
           strcmp(frame->file, "<stdin>") == 0 ||
           (strcmp(frame->file, "<string>") == 0 && frame->function != NULL &&
            strcmp(frame->function, "<module>") == 0);
}

/* True for code of installed packages, which the user cannot change. */
static bool is_installed(const struct spw_python_frame *frame)
{
    if (frame->file != NULL && is_typed(frame)) {
        return false;
    }
    return frame->file == NULL || strstr(frame->file, "/site-packages/") != NULL ||
           strstr(frame->file, "/dist-packages/") != NULL ||
           strstr(frame->file, "/lib/python") != NULL || frame->file[0] == '<';
}

const struct spw_python_frame *spw_callsite_own_frame(const struct spw_callsite_facts *site)
{
    for (size_t i = 0; i < site->python_count; i++) {
        if (!is_installed(&site->python[i])) {
            return &site->python[i];
        }
    }
    return site->python_count > 0 ? &site->python[site->python_count - 1] : NULL;
}

/* The frame of a model's file: the innermost one in a file "modeling_*" or, without one, in an
 * installed package other than PyTorch. NULL: there is none. */
static const struct spw_python_frame *model_frame(const struct spw_callsite_facts *site)
{
    const struct spw_python_frame *found = NULL;

    for (size_t i = 0; i < site->python_count; i++) {
        const struct spw_python_frame *frame = &site->python[i];

        if (!is_installed(frame)) {
            break; /* the user's own frame */
        }
        if (frame->file == NULL || frame->file[0] == '<' ||
            strstr(frame->file, "/torch/") != NULL) {
            continue;
        }
        if (strncmp(last_part(frame->file), "modeling_", strlen("modeling_")) == 0) {
            return frame;
        }
        if (found == NULL && strstr(frame->file, "-packages/") != NULL) {
            found = frame;
        }
    }
    return found;
}

static void append_frame(struct label *label, const struct spw_python_frame *frame)
{
    append(label, "%s:%" PRIu32 " %s", last_part(frame->file), frame->line,
           frame->function != NULL ? frame->function : "?");
}

const struct spw_native_frame *spw_callsite_named_frame(const struct spw_callsite_facts *site)
{
    for (size_t i = 0; i < site->native_count; i++) {
        const char *library = site->native[i].library;

        if (library == NULL || strcmp(library, site->native[0].library) != 0) {
            return NULL;
        }
        if (site->native[i].symbol != NULL) {
            return &site->native[i];
        }
    }
    return NULL;
}

static void append_native(struct label *label, const struct spw_callsite_facts *site)
{
    const struct spw_native_frame *named = spw_callsite_named_frame(site);

    if (named != NULL) {
        append(label, "%.80s in %s", named->symbol, last_part(named->library));
    } else {
        append(label, "%s", last_part(site->native_count > 0 ? site->native[0].library : NULL));
    }
}

bool spw_callsite_operator(const struct spw_callsite_facts *site, char *ret_operator,
                           size_t capacity)
{
    static const char operators[] = "at::_ops::";

    ret_operator[0] = '\0';
    for (size_t i = site->native_count; i > 0; i--) {
        const char *symbol = site->native[i - 1].symbol;

        if (symbol != NULL && strncmp(symbol, operators, sizeof(operators) - 1) == 0) {
            const char *name = symbol + sizeof(operators) - 1;

            (void)snprintf(ret_operator, capacity, "aten::%.*s", (int)strcspn(name, ":("), name);
            return true;
        }
    }
    return false;
}

void spw_callsite_label(const struct spw_callsite_facts *site, char *ret_label, size_t capacity)
{
    const struct spw_python_frame *own = spw_callsite_own_frame(site);
    const char *module = spw_callsite_module_class(site);
    struct label label = {.text = ret_label, .capacity = capacity};
    char operator[OPERATOR];
    bool operates = site->node == NULL && spw_callsite_operator(site, operator, sizeof(operator));

    ret_label[0] = '\0';
    if (own != NULL) {
        const struct spw_python_frame *model = model_frame(site);

        append_frame(&label, own);
        if (model != NULL && model != own && model != &site->python[0]) {
            append(&label, " via ");
            append_frame(&label, model);
        }
        if (own != &site->python[0]) {
            append(&label, " via ");
            append_frame(&label, &site->python[0]);
        }
    } else if (site->node == NULL && !operates) {
        append_native(&label, site);
    }
    if (site->node != NULL || operates) {
        append(&label, "%s%s", own != NULL ? ", " : "", operates ? operator : site->node);
    }
    if (module != NULL) {
        append(&label, " in %s", module);
    }
    if (site->thread != NULL && strcmp(site->thread, "main") != 0) {
        append(&label, " on %s", site->thread);
    }
    if (site->tag != NULL) {
        append(&label, " tagged %s", site->tag);
    }
}

/* ---- sites with the same label ---- */

static bool is_same(const char *one, const char *other)
{
    return one == NULL || other == NULL ? one == other : strcmp(one, other) == 0;
}

static const struct spw_python_frame *differing_python(const struct spw_callsite_facts *site,
                                                       const struct spw_callsite_facts *other)
{
    for (size_t i = 0; i < site->python_count; i++) {
        const struct spw_python_frame *frame = &site->python[i];

        if (i >= other->python_count || frame->line != other->python[i].line ||
            !is_same(frame->file, other->python[i].file) ||
            !is_same(frame->function, other->python[i].function)) {
            return frame;
        }
    }
    return NULL;
}

static const char *differing_native(const struct spw_callsite_facts *site,
                                    const struct spw_callsite_facts *other)
{
    for (size_t i = 0; i < site->native_count; i++) {
        const char *symbol = site->native[i].symbol;

        if (symbol != NULL &&
            (i >= other->native_count || !is_same(symbol, other->native[i].symbol))) {
            return symbol;
        }
    }
    return NULL;
}

/* The length of a function's name without its parameters. */
static int name_length(const char *symbol)
{
    static const char anonymous[] = "(anonymous namespace)";
    size_t length = strcspn(symbol, "(");

    while (strncmp(symbol + length, anonymous, sizeof(anonymous) - 1) == 0) {
        length += sizeof(anonymous) - 1;
        length += strcspn(symbol + length, "(");
    }
    return (int)(length < OPERATOR ? length : OPERATOR);
}

bool spw_callsite_label_apart(const struct spw_callsite_facts *site,
                              const struct spw_callsite_facts *other, char *ret_text,
                              size_t capacity)
{
    const struct spw_python_frame *frame = differing_python(site, other);
    const char *symbol = frame == NULL ? differing_native(site, other) : NULL;
    struct label label = {.text = ret_text, .capacity = capacity};

    ret_text[0] = '\0';
    if (frame != NULL) {
        append_frame(&label, frame);
    } else if (symbol != NULL) {
        append(&label, "%.*s", name_length(symbol), symbol);
    } else if (!is_same(site->thread, other->thread) && site->thread != NULL) {
        append(&label, "thread %s", site->thread);
    }
    return label.used > 0;
}
