/* Helper processes: spillway's own command, started from the program to try calls that may crash or
 * hang.
 *
 * A helper is invisible to the program: no SIGCHLD comes, wait() in the program does not return it,
 * no fork handler runs, and it is a process group of its own, so that it does not get the
 * terminal's signals. Its standard input and error are /dev/null. Its environment holds only
 * variables that the driver and the simulated GPU read, as they were at the start (start.h), since
 * the program may change its environment at any time. It does not outlive the program.
 *
 * Locking: none. */
#pragma once

#include <stdint.h>

enum { SPW_CHILD_TEXT = 192 };

enum spw_child_end {
    SPW_CHILD_EXITED,
    SPW_CHILD_KILLED,     /* by a signal */
    SPW_CHILD_TIMED_OUT,  /* and was killed for it */
    SPW_CHILD_NOT_STARTED /* the system refused */
};

struct spw_child_result {
    enum spw_child_end end;
    int code;                  /* exit code, or number of the signal */
    char said[SPW_CHILD_TEXT]; /* the first line of its output, or a text about its end */
};

/* Runs `arguments` (NULL-terminated, the first one a path) and waits for the end, at most for
 * `limit_ns`. A process that does not die when it is killed is left behind. */
void spw_child_run(const char *const *arguments, uint64_t limit_ns,
                   struct spw_child_result *ret_result);
