/* The entry points of the driver and the runtime, and the child process of `spillway doctor` that
 * tests one of them. No locking. */
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

/* An entry point's word on the child's command line, and its description. */
struct spw_cli_entry_point_row {
    const char *word, *text;
};
extern const struct spw_cli_entry_point_row spw_cli_entry_points[SPW_CLI_ENTRY_POINT_COUNT];

/* The child prints this for an entry point that this machine does not have. */
#define SPW_CLI_ENTRY_POINT_ABSENT "not there"

/* Without a device the child calls nothing. It prints REACHED if a program would call spillway's
 * function, MISSED if it would call another. */
#define SPW_CLI_ENTRY_POINT_REACHED "reached"
#define SPW_CLI_ENTRY_POINT_MISSED  "missed"

/* The child process: `spillway _entry-point WORD`. Allocates and frees once through that entry
 * point, and prints "done" or one line with the error. Without a device, only looks up the
 * function. Returns the exit code. */
int spw_cli_entry_point_child(int argc, char **argv);
