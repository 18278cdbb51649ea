#include "cli/console/arguments.h"

#include "cli/console/messages.h"
#include "common/nearest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 1000000, OPTIONS_MOST = 128 };

/* The option that is named by the first `length` bytes of `name`, or NULL. */
static const struct spw_cli_option *find(const struct spw_cli_option *options, const char *name,
                                         size_t length)
{
    for (; options != NULL && options->name != NULL; options++) {
        if (length > 0 && strlen(options->name) == length &&
            strncmp(options->name, name, length) == 0) {
            return options;
        }
    }
    return NULL;
}

static const char *nearest(const struct spw_cli_option *options, const char *name)
{
    const char *names[OPTIONS_MOST];
    size_t count = 0;

    for (; options->name != NULL && count + 1 < OPTIONS_MOST; options++) {
        if (options->name[0] != '\0') {
            names[count++] = options->name;
        }
    }
    names[count++] = "help";
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
        spw_cli_complain(
            arguments->command, "--%s is not an option (spillway %s --help%s lists them)", name,
            arguments->command,
            find(arguments->options, "help-all", strlen("help-all")) != NULL ? "-all" : "");
    }
}

int spw_cli_bad_usage(const char *command, const char *text)
{
    spw_cli_complain(command, "%s (see spillway %s --help)", text, command);
    return SPW_CLI_EXIT_USAGE;
}

bool spw_cli_arguments_unexpected(const struct spw_cli_arguments *arguments)
{
    spw_cli_complain(arguments->command, "%s: unexpected argument (see spillway %s --help)",
                     arguments->value, arguments->command);
    return false;
}

static bool take_number(const struct spw_cli_arguments *arguments,
                        const struct spw_cli_option *option)
{
    const char *text = arguments->value;
    char *end;
    unsigned long long value = strtoull(text, &end, 10);

    if (*text < '0' || *text > '9' || *end != '\0' || value > MOST) {
        spw_cli_complain(arguments->command, "--%s=%s: not a number (expected 0 to %d)",
                         option->name, text, MOST);
        return false;
    }
    *option->number = (size_t)value;
    return true;
}

static bool take(struct spw_cli_arguments *arguments, const struct spw_cli_option *option)
{
    arguments->option = option;
    if (option->given != NULL) {
        *option->given = true;
    }
    if (option->take != NULL) {
        return option->take(arguments);
    }
    if (option->number != NULL) {
        return take_number(arguments, option);
    }
    if (option->text != NULL) {
        *option->text = arguments->value;
    }
    return true;
}

static bool take_operand(struct spw_cli_arguments *arguments)
{
    const struct spw_cli_option *option = arguments->options;
    int left = arguments->operands++;

    while (option->name != NULL &&
           (option->name[0] != '\0' || (option->take == NULL && left-- > 0))) {
        option++;
    }
    return option->name != NULL ? take(arguments, option) : spw_cli_arguments_unexpected(arguments);
}

/* Takes "--NAME". If the option has a value in the next argument, takes this argument as well. */
static bool take_option(struct spw_cli_arguments *arguments, const char *argument)
{
    const struct spw_cli_option help = {"help", .given = &arguments->helps};
    size_t length = strcspn(argument + 2, "=");
    bool has_value = argument[2 + length] == '=';
    const struct spw_cli_option *option = find(arguments->options, argument + 2, length);
    const char *problem = NULL;

    if (option == NULL && length == strlen("help") && strncmp(argument, "--help", 6) == 0) {
        option = &help;
    }
    if (option == NULL) {
        complain_unknown(arguments, argument);
        return false;
    }
    if (option->given != NULL) {
        problem = has_value ? "no value is expected" : NULL;
    } else if (has_value) {
        arguments->value = argument + 2 + length + 1;
    } else if (arguments->next < arguments->argc &&
               strcmp(arguments->argv[arguments->next], "--") != 0) {
        arguments->value = arguments->argv[arguments->next++];
    } else {
        problem = "a value is missing";
    }
    if (problem != NULL) {
        spw_cli_complain(arguments->command, "--%.*s: %s", (int)length, argument + 2, problem);
        return false;
    }
    return take(arguments, option);
}

bool spw_cli_arguments_parse(struct spw_cli_arguments *arguments)
{
    bool good = true;

    for (arguments->next = 1; good && arguments->next < arguments->argc;) {
        const char *argument = arguments->argv[arguments->next];

        if (arguments->ended || argument[0] != '-' || argument[1] == '\0') {
            if (arguments->stops_at_operand) {
                return true;
            }
            arguments->next++;
            arguments->value = argument;
            good = take_operand(arguments);
            continue;
        }
        arguments->next++;
        if (strcmp(argument, "--") == 0) {
            arguments->ended = true;
        } else if (strcmp(argument, "-h") == 0) {
            arguments->helps = true;
        } else if (argument[1] == '-') {
            good = take_option(arguments, argument);
        } else {
            spw_cli_complain(arguments->command, "%s is not an option (options begin with --)",
                             argument);
            good = false;
        }
    }
    return good;
}

int spw_cli_arguments_read(int argc, char **argv, const struct spw_cli_option *options,
                           const char *help, void *settings)
{
    struct spw_cli_arguments arguments = {
        .command = argv[0], .argc = argc, .argv = argv, .options = options, .settings = settings};

    if (!spw_cli_arguments_parse(&arguments)) {
        return SPW_CLI_EXIT_USAGE;
    }
    if (arguments.helps) {
        fputs(help, stdout);
        return SPW_CLI_EXIT_OK;
    }
    return -1;
}
