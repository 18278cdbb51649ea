/* `spillway run --fit`: chooses a policy for a command that does not fit, and keeps it for the next
 * run of this command. It does not know how programs are started.
 *
 *   choice    chooses a policy, from the recording of a run that did not fit
 *   key       names the subject of a choice: a command, its folder, its card
 *   keep      declares the functions for commands
 *   members   the processes of a run that a choice is about
 *   merge     joins the policies of the ranks of a job
 *   session   before and after a run with --fit
 *   shown     shows and forgets kept choices
 *   state     figures of a kept choice, and whether a run was as predicted
 *   store     the files of kept choices, in the user's cache folder
 *
 * A kept choice is an ordinary policy file, whose comment says what it is for. Any trouble leaves a
 * run without --fit, and one line. One thread. */
#pragma once

#include <stdbool.h>

/* _begin prepares the environment for a run of `arguments` with --fit: for the kept choice, or for
 * a recording. `card` names the device. _end takes the result of the run, which ended with `code`;
 * call it while the run directory exists. Both write at most one line to stderr. */
void spw_cli_keep_begin(char **arguments, const char *card);
void spw_cli_keep_end(int code);

/* Print to stdout, and remove, the kept choices for a command in the current folder, on any card.
 * Without arguments (NULL), the choices for all commands count. Return the exit code. */
int spw_cli_keep_explain(char *const *arguments);
int spw_cli_keep_forget(char *const *arguments);
