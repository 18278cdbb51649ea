/* The entry points of the driver and the runtime, and the child process of `spillway doctor` that
 * tests one entry point. No locking. */
#pragma once

enum spw_cli_entry_point {
    SPW_CLI_ENTRY_POINT_EXPORTED,
    SPW_CLI_ENTRY_POINT_DLSYM,
    SPW_CLI_ENTRY_POINT_RESOLVER_V1,
    SPW_CLI_ENTRY_POINT_RESOLVER_V2,
    SPW_CLI_ENTRY_POINT_ORDERED,
    SPW_CLI_ENTRY_POINT_RUNTIME,
    SPW_CLI_ENTRY_POINT_RUNTIME_ORDERED,
    SPW_CLI_ENTRY_POINT_COUNT
};

/* The word that stands for an entry point on the child's command line, and the description of the
 * entry point. */
struct spw_cli_entry_point_row {
    const char *word, *text;
};
extern const struct spw_cli_entry_point_row spw_cli_entry_points[SPW_CLI_ENTRY_POINT_COUNT];

/* The output of the child if this machine does not have the entry point. */
#define SPW_CLI_ENTRY_POINT_ABSENT "not there"

/* The output of the child on a machine without a device, where the child only looks up the
 * function. It prints REACHED if the found function is spillway's, and MISSED if it is another
 * function. */
#define SPW_CLI_ENTRY_POINT_REACHED "reached"
#define SPW_CLI_ENTRY_POINT_MISSED  "missed"

/* Runs the child process, `spillway _entry-point WORD`. Allocates and frees once through the entry
 * point, and prints "done" or one line with the error. On a machine without a device, only looks up
 * the function. Returns the exit code. */
int spw_cli_entry_point_child(int argc, char **argv);
