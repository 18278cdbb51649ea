/* Looks at the file of a program, to find out if spillway can be preloaded into it. One thread. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

enum spw_cli_program_kind {
    SPW_CLI_PROGRAM_USUAL,   /* or not known */
    SPW_CLI_PROGRAM_STATIC,  /* has no dynamic linker: nothing is preloaded */
    SPW_CLI_PROGRAM_SET_ID,  /* runs as another user: the dynamic linker preloads nothing */
    SPW_CLI_PROGRAM_MUSL,    /* does not start with a library for glibc preloaded */
    SPW_CLI_PROGRAM_FOREIGN, /* for another processor, or of 32 bits */
};

struct spw_cli_program {
    enum spw_cli_program_kind kind;
    char file[PATH_MAX]; /* that execvp executes; "": there is none */
    char path[PATH_MAX]; /* of `file`, or of the interpreter of a script */
    char what[64];       /* FOREIGN: its processor, in words */
};

/* Looks at the file that execvp would execute for `name`, and at the interpreter of a script. */
void spw_cli_program_look(const char *name, struct spw_cli_program *ret_program);

/* Writes the reason that spillway cannot be preloaded, as words after the path: "is static, ...".
 * False without such a reason. */
bool spw_cli_program_reason(const struct spw_cli_program *program, char *text, size_t capacity);
