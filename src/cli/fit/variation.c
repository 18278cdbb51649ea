#include "cli/fit/fit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/console/messages.h"

/* The place of {NAME} in a text, or NULL. */
static char *find_name(char *text, const char *name)
{
    size_t length = strlen(name);

    for (char *at = strchr(text, '{'); at != NULL; at = strchr(at + 1, '{')) {
        if (strncmp(at + 1, name, length) == 0 && at[1 + length] == '}') {
            return at;
        }
    }
    return NULL;
}

static bool is_used(const char *name, char **arguments)
{
    for (; *arguments != NULL; arguments++) {
        if (find_name(*arguments, name) != NULL) {
            return true;
        }
    }
    return false;
}

/* Reads a range such as "1..16". Returns false for any other value. */
static bool is_range(const char *text, unsigned long *ret_first, unsigned long *ret_last)
{
    enum { DIGITS = 9 };
    size_t first = strspn(text, "0123456789");
    size_t last = strncmp(text + first, "..", 2) == 0 ? strspn(text + first + 2, "0123456789") : 0;

    if (first == 0 || first > DIGITS || last == 0 || last > DIGITS ||
        text[first + 2 + last] != '\0') {
        return false;
    }
    *ret_first = strtoul(text, NULL, 10);
    *ret_last = strtoul(text + first + 2, NULL, 10);
    return true;
}

static bool add(const char *command, const char *value, struct spw_cli_fit_variation *variation)
{
    if (variation->count == SPW_CLI_FIT_VALUES) {
        spw_cli_complain(command, "--vary: more than %d values", SPW_CLI_FIT_VALUES);
        return false;
    }
    variation->values[variation->count] = strdup(value);
    return variation->values[variation->count++] != NULL;
}

static bool split(const char *command, char *values, struct spw_cli_fit_variation *variation)
{
    unsigned long first, last;
    char *value, number[24];
    bool good = true;

    while (good && (value = strsep(&values, ",")) != NULL) {
        if (*value == '\0') {
            spw_cli_complain(command, "--vary: a value is empty (expected NAME=VALUE,VALUE,...)");
            return false;
        }
        if (!is_range(value, &first, &last)) {
            good = add(command, value, variation);
            continue;
        }
        if (first > last) {
            spw_cli_complain(command, "--vary: %s goes down (expected the least first: %lu..%lu)",
                             value, last, first);
            return false;
        }
        for (; good && first <= last; first++) {
            (void)snprintf(number, sizeof(number), "%lu", first);
            good = add(command, number, variation);
        }
    }
    return good;
}

/* Reads NAME=VALUES from the copy of the text in `variation->name`. */
static bool read_text(const char *command, const char *text, char **arguments,
                      struct spw_cli_fit_variation *variation)
{
    char *values = strchr(variation->name, '=');

    if (values == NULL || values == variation->name) {
        spw_cli_complain(command, "--vary=%s: no name and values (expected NAME=VALUE,VALUE,...)",
                         text);
        return false;
    }
    *values = '\0';
    if (!split(command, values + 1, variation)) {
        return false;
    }
    if (!is_used(variation->name, arguments)) {
        spw_cli_complain(command,
                         "--vary: {%s} is not in the command: write {%s} where the value goes, "
                         "such as --batch {%s}",
                         variation->name, variation->name, variation->name);
        return false;
    }
    return true;
}

bool spw_cli_fit_variation_read(const char *command, const char *text, char **arguments,
                                struct spw_cli_fit_variation *ret_variation)
{
    struct spw_cli_fit_variation variation = {.count = text == NULL};

    if (text != NULL) {
        variation.name = strdup(text);
        if (variation.name == NULL || !read_text(command, text, arguments, &variation)) {
            spw_cli_fit_variation_fini(&variation);
            return false;
        }
    }
    *ret_variation = variation;
    return true;
}

void spw_cli_fit_variation_fini(struct spw_cli_fit_variation *variation)
{
    for (size_t i = 0; i < variation->count; i++) {
        free(variation->values[i]);
    }
    free(variation->name);
}

/* Copies an argument, and replaces each {NAME} with the value. The caller frees the copy. */
static char *put_value(char *argument, const char *name, const char *value)
{
    size_t braces = strlen(name) + 2, size = strlen(argument) + 1;
    char *text, *end, *at;

    for (at = find_name(argument, name); at != NULL; at = find_name(at + braces, name)) {
        size += strlen(value);
    }
    text = malloc(size);
    if (text == NULL) {
        return NULL;
    }
    end = text;
    while ((at = find_name(argument, name)) != NULL) {
        end = mempcpy(end, argument, (size_t)(at - argument));
        end = stpcpy(end, value);
        argument = at + braces;
    }
    strcpy(end, argument);
    return text;
}

char **spw_cli_fit_variation_arguments(const struct spw_cli_fit_variation *variation, size_t value,
                                       char **arguments)
{
    size_t count = 0;
    char **varied;

    while (arguments[count] != NULL) {
        count++;
    }
    varied = calloc(count + 1, sizeof(*varied));
    for (size_t i = 0; varied != NULL && i < count; i++) {
        varied[i] = variation->name == NULL
                        ? strdup(arguments[i])
                        : put_value(arguments[i], variation->name, variation->values[value]);
        if (varied[i] == NULL) {
            spw_cli_fit_variation_free(varied);
            return NULL;
        }
    }
    return varied;
}

void spw_cli_fit_variation_free(char **arguments)
{
    for (size_t i = 0; arguments != NULL && arguments[i] != NULL; i++) {
        free(arguments[i]);
    }
    free(arguments);
}
