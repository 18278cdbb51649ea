#include "cli/console/arguments.h"

#include "cli/console/messages.h"
#include "common/nearest.h"

#include <stdlib.h>
#include <string.h>

enum { MOST = 1000000 };

enum { OPTIONS_MOST = 128 };

/* The option of that name, which ends at the byte `length`; NULL when there is none. */
static const struct option *find(const struct option *options, const char *name, size_t length)
{
    for (; options != NULL && options->name != NULL; options++) {
        if (strlen(options->name) == length && strncmp(options->name, name, length) == 0) {
            return options;
        }
    }
    return NULL;
}

static const char *nearest(const struct option *options, const char *name)
{
    const char *names[OPTIONS_MOST];
    size_t count = 0;

    for (; options->name != NULL && count < OPTIONS_MOST; options++) {
        names[count++] = options->name;
    }
    return spw_nearest(name, /* prefix_length */ 0, names, count);
}

static void complain_unknown(const struct spw_cli_arguments *arguments, const char *argument)
{
    char name[64];
    int length = (int)strcspn(argument + 2, "=");
    const char *meant;

    if (find(arguments->other_options, argument + 2, (size_t)length) != NULL) {
        spw_cli_complain(arguments->command,
                         "--%.*s is not an option here (it is one of spillway %s)", length,
                         argument + 2, arguments->other_command);
        return;
    }
    length = length < (int)sizeof(name) ? length : (int)sizeof(name) - 1;
    memcpy(name, argument + 2, (size_t)length);
    name[length] = '\0';
    meant = nearest(arguments->options, name);
    if (meant != NULL) {
        spw_cli_complain(arguments->command, "--%s is not an option (did you mean --%s?)", name,
                         meant);
    } else {
        spw_cli_complain(arguments->command,
                         "--%s is not an option (spillway %s --help lists them)", name,
                         arguments->command);
    }
}

/* Complains about an argument that getopt_long refused although its name is known. */
static void complain_refused(const struct spw_cli_arguments *arguments, const char *argument,
                             bool lacks_value)
{
    int length = (int)strcspn(argument, "=");

    if (strncmp(argument, "--", 2) != 0) {
        spw_cli_complain(arguments->command, "%s is not an option (options begin with --)",
                         argument);
    } else {
        spw_cli_complain(arguments->command, "%.*s: %s", length, argument,
                         lacks_value ? "a value is missing" : "no value is expected");
    }
}

/* The arguments behind the options, one by one. */
static int next_operand(struct spw_cli_arguments *arguments)
{
    arguments->ended = true;
    if (arguments->stops_at_operand || arguments->next >= arguments->argc) {
        return SPW_CLI_ARGUMENT_END;
    }
    arguments->value = arguments->argv[arguments->next++];
    return SPW_CLI_ARGUMENT_OPERAND;
}

/* Looks names up before getopt_long, which accepts abbreviations and suggests no names. */
int spw_cli_arguments_next(struct spw_cli_arguments *arguments)
{
    /* '+' stops at the first operand, '-' returns operands, ':' reports a missing value as such. */
    const char *letters = arguments->stops_at_operand ? "+:h" : "-:h";
    const char *argument;
    int result;

    if (!arguments->started) {
        arguments->started = true;
        arguments->next = 1;
        optind = 0; /* resets getopt_long */
        opterr = 0;
    }
    arguments->value = NULL;
    if (arguments->ended || arguments->next >= arguments->argc) {
        return next_operand(arguments);
    }
    argument = arguments->argv[arguments->next];
    if (strncmp(argument, "--", 2) == 0 && argument[2] != '\0' &&
        find(arguments->options, argument + 2, strcspn(argument + 2, "=")) == NULL) {
        complain_unknown(arguments, argument);
        return SPW_CLI_ARGUMENT_BAD;
    }
    result = getopt_long(arguments->argc, arguments->argv, letters, arguments->options, NULL);
    arguments->next = optind;
    if (result == -1) {
        return next_operand(arguments);
    }
    if (result == ':' || result == '?') {
        complain_refused(arguments, argument, /* lacks_value */ result == ':');
        return SPW_CLI_ARGUMENT_BAD;
    }
    /* "--" ends the options: it is never a value. */
    if (optarg != NULL && strcmp(optarg, "--") == 0 && strchr(argument, '=') == NULL) {
        complain_refused(arguments, argument, /* lacks_value */ true);
        return SPW_CLI_ARGUMENT_BAD;
    }
    arguments->value = optarg;
    return result;
}

bool spw_cli_arguments_each(int argc, char **argv, const struct option *options,
                            spw_cli_take_argument *take, void *settings)
{
    struct spw_cli_arguments arguments = {
        .command = argv[0], .argc = argc, .argv = argv, .options = options};
    int found;

    while ((found = spw_cli_arguments_next(&arguments)) != SPW_CLI_ARGUMENT_END) {
        if (found == SPW_CLI_ARGUMENT_BAD || !take(&arguments, found, settings)) {
            return false;
        }
    }
    return true;
}

void spw_cli_arguments_unexpected(const struct spw_cli_arguments *arguments)
{
    spw_cli_complain(arguments->command, "%s: unexpected argument (see spillway %s --help)",
                     arguments->value, arguments->command);
}

bool spw_cli_arguments_take_one(const struct spw_cli_arguments *arguments, const char **operand)
{
    if (*operand != NULL) {
        spw_cli_arguments_unexpected(arguments);
        return false;
    }
    *operand = arguments->value;
    return true;
}

bool spw_cli_arguments_take_number(const struct spw_cli_arguments *arguments, const char *name,
                                   size_t *ret_number)
{
    const char *text = arguments->value;
    char *end;
    unsigned long long value = strtoull(text, &end, 10);

    if (*text < '0' || *text > '9' || *end != '\0' || value > MOST) {
        spw_cli_complain(arguments->command, "--%s=%s: not a number (expected 0 to %d)", name, text,
                         MOST);
        return false;
    }
    *ret_number = (size_t)value;
    return true;
}
