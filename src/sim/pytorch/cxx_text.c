#include "sim/pytorch/cxx_text.h"

#include <string.h>

#define ANONYMOUS "(anonymous namespace)"
#define LAMBDA    "{lambda("

struct sim_cxx_text sim_cxx_text(const char *text)
{
    return (struct sim_cxx_text){text, strlen(text)};
}

bool sim_cxx_is(struct sim_cxx_text text, const char *other)
{
    return strlen(other) == text.length && memcmp(text.start, other, text.length) == 0;
}

bool sim_cxx_begins(struct sim_cxx_text text, const char *prefix)
{
    size_t length = strlen(prefix);

    return length <= text.length && memcmp(text.start, prefix, length) == 0;
}

static struct sim_cxx_text behind(struct sim_cxx_text text, size_t at)
{
    return (struct sim_cxx_text){text.start + at, text.length - at};
}

static struct sim_cxx_text trim(struct sim_cxx_text text)
{
    while (text.length > 0 && text.start[0] == ' ') {
        text = behind(text, 1);
    }
    while (text.length > 0 && text.start[text.length - 1] == ' ') {
        text.length--;
    }
    return text;
}

static bool opens(char c)
{
    return c == '<' || c == '(' || c == '{' || c == '[';
}

static bool closes(char c)
{
    return c == '>' || c == ')' || c == '}' || c == ']';
}

/* The index of the bracket that closes the bracket at `at`; the text's length if there is none. */
static size_t closing(struct sim_cxx_text text, size_t at)
{
    size_t depth = 0;

    for (size_t i = at; i < text.length; i++) {
        if (opens(text.start[i])) {
            depth++;
        } else if (closes(text.start[i]) && --depth == 0) {
            return i;
        }
    }
    return text.length;
}

static struct sim_cxx_list split(struct sim_cxx_text text)
{
    struct sim_cxx_list list = {.count = 0};
    size_t depth = 0, first = 0;

    if (trim(text).length == 0) {
        return list;
    }
    for (size_t i = 0; i <= text.length; i++) {
        bool ends = i == text.length || (depth == 0 && text.start[i] == ',');

        if (ends && list.count < SIM_CXX_ARGUMENTS) {
            list.items[list.count++] = trim((struct sim_cxx_text){text.start + first, i - first});
            first = i + 1;
        } else if (i < text.length && opens(text.start[i])) {
            depth++;
        } else if (i < text.length && closes(text.start[i])) {
            depth--;
        }
    }
    return list;
}

/* The content of the brackets that open at `at`, split at its commas. */
static struct sim_cxx_list split_at(struct sim_cxx_text text, size_t at)
{
    return split((struct sim_cxx_text){text.start + at + 1, closing(text, at) - at - 1});
}

/* The index of the first bracket outside of names; the text's length if there is none. */
static size_t first_bracket(struct sim_cxx_text text)
{
    size_t at = 0;

    while (at < text.length && !opens(text.start[at])) {
        at++;
        if (sim_cxx_begins(behind(text, at), ANONYMOUS)) {
            at += strlen(ANONYMOUS);
        }
    }
    return at;
}

/* The last part of a qualified name that ends at `end`. */
static struct sim_cxx_text last_part(struct sim_cxx_text text, size_t end)
{
    size_t first = end;

    while (first > 0 && text.start[first - 1] != ':' && text.start[first - 1] != ' ') {
        first--;
    }
    return (struct sim_cxx_text){text.start + first, end - first};
}

/* The index of the last lambda outside of brackets; the text's length if there is none. */
static size_t last_lambda(struct sim_cxx_text text)
{
    size_t found = text.length;

    for (size_t i = 0; i < text.length; i++) {
        if (sim_cxx_begins(behind(text, i), LAMBDA)) {
            found = i;
        }
        if (opens(text.start[i])) {
            i = closing(text, i);
        }
    }
    return found;
}

bool sim_cxx_read(struct sim_cxx_text text, struct sim_cxx_entity *ret_entity)
{
    size_t bracket, lambda;

    text = trim(text);
    if (sim_cxx_begins(text, ANONYMOUS)) {
        text = behind(text, strlen(ANONYMOUS));
    }
    bracket = first_bracket(text);
    lambda = last_lambda(text);
    memset(ret_entity, 0, sizeof(*ret_entity));
    ret_entity->name = last_part(text, bracket);
    ret_entity->is_lambda = lambda < text.length;
    if (bracket < text.length && text.start[bracket] == '<') {
        ret_entity->arguments = split_at(text, bracket);
        bracket = closing(text, bracket) + 1;
    }
    if (lambda < text.length) {
        ret_entity->parameters = split_at(text, lambda + strlen(LAMBDA) - 1);
    } else if (bracket < text.length && text.start[bracket] == '(') {
        ret_entity->parameters = split_at(text, bracket);
    }
    return ret_entity->name.length > 0;
}
