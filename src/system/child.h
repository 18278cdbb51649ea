/* Helper processes. The program's process starts the command `spillway` to try calls that may crash
 * or hang.
 *
 * A helper is invisible to the program: no SIGCHLD is sent, wait() does not return the helper, and
 * no fork handler runs. Each helper is a process group of its own, so it does not get the signals
 * of the terminal. Its standard input and standard error are /dev/null. Its environment contains
 * only variables that the driver and the simulated GPU read. Their values are those at the start
 * (start.h), because the program may change its own environment at any time. A helper does not
 * outlive the program.
 *
 * Locking: none. */
#pragma once

#include <stdint.h>

enum { SPW_CHILD_TEXT = 192 };

enum spw_child_end {
    SPW_CHILD_EXITED,
    SPW_CHILD_KILLED,     /* killed by a signal */
    SPW_CHILD_TIMED_OUT,  /* killed because the limit had passed */
    SPW_CHILD_NOT_STARTED /* the system refused to start it */
};

struct spw_child_result {
    enum spw_child_end end;
    int code;                  /* exit code, or number of the signal */
    char said[SPW_CHILD_TEXT]; /* first line of its output, or a text about how it ended */
};

/* Runs `arguments` and waits for the end of the process, at most `limit_ns`. `arguments` ends with
 * NULL; its first element is the path of the program to run. A process that does not die when it is
 * killed is left behind. */
void spw_child_run(const char *const *arguments, uint64_t limit_ns,
                   struct spw_child_result *ret_result);
