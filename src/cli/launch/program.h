/* The file of the program that is launched: whether spillway can be loaded into it. One thread. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

enum spw_cli_program_kind {
    SPW_CLI_PROGRAM_USUAL,   /* or not known */
    SPW_CLI_PROGRAM_STATIC,  /* has no dynamic linker */
    SPW_CLI_PROGRAM_SET_ID,  /* runs as another user: the dynamic linker preloads nothing */
    SPW_CLI_PROGRAM_MUSL,    /* does not start with a library for glibc preloaded */
    SPW_CLI_PROGRAM_FOREIGN, /* for another processor, or of 32 bits */
};

struct spw_cli_program {
    enum spw_cli_program_kind kind;
    char file[PATH_MAX]; /* what execvp executes; "": there is none */
    char path[PATH_MAX]; /* of the file in question: the interpreter of a script */
    char what[64];       /* FOREIGN: what it is for, in words */
};

/* Looks at the file that execvp would execute for `name`, and at the interpreter of a script. */
void spw_cli_program_look(const char *name, struct spw_cli_program *ret_program);

/* Writes why spillway is not in the program, in words that follow its path: "is static, ...". False
 * when it can be. */
bool spw_cli_program_reason(const struct spw_cli_program *program, char *text, size_t capacity);
