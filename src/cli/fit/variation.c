#include "cli/fit/variation.h"

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

static bool split(const char *command, char *values, struct spw_cli_fit_variation *variation)
{
    char *value;

    while ((value = strsep(&values, ",")) != NULL) {
        if (*value == '\0') {
            spw_cli_complain(command, "--vary: a value is empty (expected NAME=VALUE,VALUE,...)");
            return false;
        }
        if (variation->count == SPW_CLI_FIT_VALUES) {
            spw_cli_complain(command, "--vary: more than %d values", SPW_CLI_FIT_VALUES);
            return false;
        }
        variation->values[variation->count++] = value;
    }
    return true;
}

bool spw_cli_fit_variation_read(const char *command, const char *text, char **arguments,
                                struct spw_cli_fit_variation *ret_variation)
{
    struct spw_cli_fit_variation variation = {.count = text == NULL};
    char *values;

    if (text == NULL) {
        *ret_variation = variation;
        return true;
    }
    variation.name = strdup(text);
    values = variation.name == NULL ? NULL : strchr(variation.name, '=');
    if (values == NULL || values == variation.name) {
        spw_cli_complain(command, "--vary=%s: no name and values (expected NAME=VALUE,VALUE,...)",
                         text);
        free(variation.name);
        return false;
    }
    *values = '\0';
    if (!split(command, values + 1, &variation)) {
        free(variation.name);
        return false;
    }
    if (!is_used(variation.name, arguments)) {
        spw_cli_complain(command, "--vary: {%s} is not in the command", variation.name);
        free(variation.name);
        return false;
    }
    *ret_variation = variation;
    return true;
}

void spw_cli_fit_variation_fini(struct spw_cli_fit_variation *variation)
{
    free(variation->name); /* the values are in it */
}

/* One argument with the value put in, to be freed. */
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
