#include "cli/commands/list.h"
#include "cli/console/arguments.h"
#include "cli/console/messages.h"
#include "cli/cudnn/server.h"
#include "cli/doctor/entry_point_child.h"
#include "cli/doctor/host_chunks.h"

#include "common/nearest.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

struct command {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *help; /* NULL: internal */
};

static const struct command commands[] = {
#define SPW_COMMAND(name, help) {#name, spw_cli_command_##name, help},
#include "cli/commands/list.def"
#undef SPW_COMMAND
    {"_entry-point", spw_cli_entry_point_child, NULL},
    {"_host-chunks", spw_cli_host_chunks_child, NULL},
    {SPW_CLI_CUDNN_SERVER, spw_cli_cudnn_server_child, NULL},
};

enum { COMMAND_COUNT = sizeof(commands) / sizeof(*commands) };

static void print_help(FILE *out)
{
    fputs("usage: spillway COMMAND ...\n\n"
          "A GPU memory pool for unmodified CUDA programs.\n\n"
          "Commands:\n",
          out);
    for (int i = 0; i < COMMAND_COUNT; i++) {
        if (commands[i].help != NULL) {
            fprintf(out, "  %-10s %s\n", commands[i].name, commands[i].help);
        }
    }
    fputs("\nExamples:\n"
          "  spillway run -- python train.py                 on this machine's GPU\n"
          "  spillway sim --memory 24GiB -- python train.py  will it fit in 24 GiB?\n\n"
          "spillway COMMAND --help describes a command.\n",
          out);
}

static const struct command *find(const char *name)
{
    for (int i = 0; i < COMMAND_COUNT; i++) {
        if (strcmp(commands[i].name, name) == 0) {
            return &commands[i];
        }
    }
    return NULL;
}

static int unknown(const char *name)
{
    const char *names[COMMAND_COUNT];
    const char *nearest;
    size_t count = 0;

    for (int i = 0; i < COMMAND_COUNT; i++) {
        if (commands[i].help != NULL) {
            names[count++] = commands[i].name;
        }
    }
    nearest = spw_nearest(name, 0, names, count);
    spw_cli_print(stderr, "spillway: %s is not a command (%s%s%s)\n", name,
                  nearest != NULL ? "did you mean " : "spillway --help lists them",
                  nearest != NULL ? nearest : "", nearest != NULL ? "?" : "");
    return SPW_CLI_EXIT_USAGE;
}

static bool is_help(const char *argument)
{
    return strcmp(argument, "--help") == 0 || strcmp(argument, "-h") == 0 ||
           strcmp(argument, "help") == 0;
}

int spw_cli_command_version(int argc, char **argv)
{
    if (argc > 1 && !is_help(argv[1])) {
        return spw_cli_bad_usage(argv[0], "no arguments are expected");
    }
    puts(argc > 1 && is_help(argv[1]) ? "usage: spillway version\n\nPrints the version."
                                      : "spillway " SPW_VERSION);
    return SPW_CLI_EXIT_OK;
}

static void note(int number)
{
}

/* Handles SIGXFSZ. A write beyond the file size limit (ulimit -f) raises this signal, which would
 * otherwise end the command. With a handler, the write fails with an error, and the command reports
 * the error. SIG_IGN is not used, because a launched program would inherit it. A program does not
 * inherit a handler. */
static void expect_limits(void)
{
    if (signal(SIGXFSZ, note) == SIG_IGN) {
        (void)signal(SIGXFSZ, SIG_IGN);
    }
}

static int dispatch(int argc, char **argv)
{
    const struct command *command;

    if (argc < 2) {
        print_help(stderr);
        return SPW_CLI_EXIT_USAGE;
    }
    if (strcmp(argv[1], "--version") == 0) {
        return spw_cli_command_version(1, argv + 1);
    }
    if (is_help(argv[1])) {
        if (argc < 3 || is_help(argv[2])) {
            print_help(stdout);
            return SPW_CLI_EXIT_OK;
        }
        command = find(argv[2]);
        if (command == NULL) {
            return unknown(argv[2]);
        }
        return command->run(2, (char *[]){argv[2], "--help", NULL});
    }
    command = find(argv[1]);
    if (command == NULL) {
        return unknown(argv[1]);
    }
    if (argc == 3 && strcmp(argv[2], "--version") == 0) {
        return spw_cli_command_version(1, argv + 1);
    }
    return command->run(argc - 1, argv + 1);
}

int main(int argc, char **argv)
{
    int code;

    expect_limits();
    code = dispatch(argc, argv);
    errno = 0;
    if (fflush(stdout) != 0 || ferror(stdout)) { /* the output is incomplete */
        spw_cli_complain(argc > 1 ? argv[1] : "help", "cannot write: %s",
                         errno != 0 ? strerror(errno) : "a part of the output is lost");
        code = code == SPW_CLI_EXIT_OK ? SPW_CLI_EXIT_FINDINGS : code;
    }
    return code;
}
