/* Finds out from the file of a program if spillway can be preloaded into it. One thread. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

enum spw_cli_program_kind {
    SPW_CLI_PROGRAM_USUAL,   /* spillway can be preloaded, or the kind is not known */
    SPW_CLI_PROGRAM_STATIC,  /* has no dynamic linker that could preload */
    SPW_CLI_PROGRAM_SET_ID,  /* runs as another user: the dynamic linker preloads nothing */
    SPW_CLI_PROGRAM_MUSL,    /* does not start with a library for glibc preloaded */
    SPW_CLI_PROGRAM_FOREIGN, /* for another processor, or of 32 bits */
};

struct spw_cli_program {
    enum spw_cli_program_kind kind;
    char file[PATH_MAX]; /* that execvp executes; "": there is none */
    char path[PATH_MAX]; /* the same, or the interpreter if `file` is a script */
    char what[64];       /* FOREIGN: its processor, in words */
};

/* Looks at the file that execvp would execute for `name`, and at the interpreter of a script. */
void spw_cli_program_look(const char *name, struct spw_cli_program *ret_program);

/* Writes why spillway cannot be preloaded, as words that follow the path: "is static, ...". False
 * if there is no such reason. */
bool spw_cli_program_reason(const struct spw_cli_program *program, char *text, size_t capacity);
