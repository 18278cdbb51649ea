#include "cli/commands/list.h"

#include "cli/completions.inc"
#include "cli/console/arguments.h"
#include "cli/console/messages.h"

#include <stdio.h>
#include <string.h>

static const char help[] =
    "usage: spillway completion bash|zsh|fish\n\n"
    "Prints the completions of a shell, to be written where the shell looks for them:\n\n"
    "  spillway completion bash > ~/.local/share/bash-completion/completions/spillway\n"
    "  spillway completion zsh > FOLDER/_spillway        (FOLDER is one of $fpath)\n"
    "  spillway completion fish > ~/.config/fish/completions/spillway.fish\n";

static const struct {
    const char *shell;
    const char *text;
} completions[] = {{"bash", completion_bash}, {"zsh", completion_zsh}, {"fish", completion_fish}};

int spw_cli_command_completion(int argc, char **argv)
{
    const char *shell = "";
    const struct spw_cli_option options[] = {{"", .text = &shell}, {0}};
    int code = spw_cli_arguments_read(argc, argv, options, help, NULL);

    for (size_t i = 0; code < 0 && i < sizeof(completions) / sizeof(*completions); i++) {
        if (strcmp(shell, completions[i].shell) == 0) {
            fputs(completions[i].text, stdout);
            code = SPW_CLI_EXIT_OK;
        }
    }
    return code >= 0 ? code : spw_cli_bad_usage(argv[0], "expected bash, zsh or fish");
}
