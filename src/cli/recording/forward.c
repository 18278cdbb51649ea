#include "cli/recording/forward.h"

#include <stdbool.h>
#include <string.h>

static const struct {
    const char *node, *operator;
} rows[] = {
#define SPW_NODE(node, operator) {node, operator},
#include "cli/recording/forward.def"
};

enum { ROWS = sizeof(rows) / sizeof(*rows) };

/* The lines that call each operator. */
static struct {
    struct spw_python_frame line; /* of the first call */
    enum { NONE, ONE, SEVERAL } lines;
} calls[ROWS];

void spw_cli_forward_clear(void)
{
    memset(calls, 0, sizeof(calls));
}

/* Returns true if the symbol is that of at::_ops::OPERATOR::call or ::redispatch. */
static bool is_call(const char *symbol, const char *operator)
{
    static const char prefix[] = "at::_ops::";
    size_t length = strlen(operator);

    return symbol != NULL && strncmp(symbol, prefix, sizeof(prefix) - 1) == 0 &&
           strncmp(symbol + sizeof(prefix) - 1, operator, length) == 0 &&
           strncmp(symbol + sizeof(prefix) - 1 + length, "::", 2) == 0;
}

static bool calls_operator(const struct spw_callsite_facts *facts, const char *operator)
{
    for (size_t i = 0; i < facts->native_count; i++) {
        if (is_call(facts->native[i].symbol, operator)) {
            return true;
        }
    }
    return false;
}

/* The first is PyTorch as installed, the others are PyTorch in its own folder. */
static bool is_pytorch(const char *file)
{
    return strstr(file, "-packages/torch/") != NULL || strstr(file, "/torch/nn/") != NULL ||
           strstr(file, "/torch/utils/") != NULL;
}

/* Returns the innermost line outside of PyTorch, or NULL. */
static const struct spw_python_frame *line_of(const struct spw_callsite_facts *facts)
{
    for (size_t i = 0; i < facts->python_count; i++) {
        const struct spw_python_frame *frame = &facts->python[i];

        if (frame->file != NULL && frame->function != NULL && !is_pytorch(frame->file)) {
            return frame;
        }
    }
    return NULL;
}

static bool is_same(const struct spw_python_frame *one, const struct spw_python_frame *other)
{
    return one->line == other->line && strcmp(one->file, other->file) == 0 &&
           strcmp(one->function, other->function) == 0;
}

void spw_cli_forward_take(const struct spw_callsite_facts *facts)
{
    const struct spw_python_frame *line = line_of(facts);

    if (facts->node != NULL && facts->python_count == 0) {
        return; /* the backward pass itself */
    }
    for (size_t i = 0; i < ROWS; i++) {
        if (!calls_operator(facts, rows[i].operator)) {
            continue;
        }
        if (line == NULL || (calls[i].lines == ONE && !is_same(&calls[i].line, line))) {
            calls[i].lines = SEVERAL;
        } else if (calls[i].lines == NONE) {
            calls[i].line = *line;
            calls[i].lines = ONE;
        }
    }
}

const struct spw_python_frame *spw_cli_forward_line(const char *node)
{
    for (size_t i = 0; i < ROWS; i++) {
        size_t length = strlen(rows[i].node);

        /* The number behind the name counts the operator's overloads. */
        if (strncmp(node, rows[i].node, length) == 0 &&
            strspn(node + length, "0123456789") == strlen(node + length)) {
            return calls[i].lines == ONE ? &calls[i].line : NULL;
        }
    }
    return NULL;
}
