/* Examines the file of a program to find out if spillway can be preloaded into the program. One
 * thread. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

enum spw_cli_program_kind {
    SPW_CLI_PROGRAM_USUAL,   /* spillway can be preloaded, or the kind is not known */
    SPW_CLI_PROGRAM_STATIC,  /* the program is static: no dynamic linker preloads libraries */
    SPW_CLI_PROGRAM_SET_ID,  /* the program runs as another user: nothing is preloaded */
    SPW_CLI_PROGRAM_MUSL,    /* built for musl: fails if a glibc library is preloaded */
    SPW_CLI_PROGRAM_FOREIGN, /* the program is built for another processor or for 32 bits */
};

struct spw_cli_program {
    enum spw_cli_program_kind kind;
    char file[PATH_MAX]; /* the file that execvp executes; "": there is none */
    char path[PATH_MAX]; /* the interpreter if `file` is a script, otherwise `file` */
    char what[64];       /* FOREIGN: the processor, in words */
};

/* Examines the file that execvp would execute for `name`. If the file is a script, examines its
 * interpreter. */
void spw_cli_program_look(const char *name, struct spw_cli_program *ret_program);

/* Writes the reason why spillway cannot be preloaded, in words that complete a sentence after the
 * path: "is static, ...". Returns false if there is no such reason. */
bool spw_cli_program_reason(const struct spw_cli_program *program, char *text, size_t capacity);
