/* Helper processes: spillway's own command, started from the program to try calls that may crash or
 * hang.
 *
 * A helper is invisible to the program: no SIGCHLD comes, wait() does not return it, and no fork
 * handler runs. A helper is a process group of its own, so it does not get the terminal's signals.
 * Its standard input and error are /dev/null. Its environment has only variables that the driver
 * and the simulated GPU read, with their values at the start (start.h), since the program may
 * change its own environment at any time. A helper does not outlive the program.
 *
 * Locking: none. */
#pragma once

#include <stdint.h>

enum { SPW_CHILD_TEXT = 192 };

enum spw_child_end {
    SPW_CHILD_EXITED,
    SPW_CHILD_KILLED,     /* by a signal */
    SPW_CHILD_TIMED_OUT,  /* killed after the limit */
    SPW_CHILD_NOT_STARTED /* the system refused */
};

struct spw_child_result {
    enum spw_child_end end;
    int code;                  /* exit code, or number of the signal */
    char said[SPW_CHILD_TEXT]; /* the first line of its output, or a text about its end */
};

/* Runs `arguments` (NULL-terminated; the first is the path of the program to run) and waits for its
 * end, at most `limit_ns`. A process that does not die when it is killed is left behind. */
void spw_child_run(const char *const *arguments, uint64_t limit_ns,
                   struct spw_child_result *ret_result);
