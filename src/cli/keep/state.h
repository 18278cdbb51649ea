/* The figures of a kept choice, and the decisions that follow from them. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/verdict/sim_result.h"

enum { SPW_CLI_KEEP_STATE = 256, SPW_CLI_KEEP_TRIES = 2 };

/* As a line of the kept file has them. */
struct spw_cli_keep_state {
    uint64_t content;       /* hash of the script; 0: not known */
    uint64_t budget_bytes;  /* device memory that the choice was made for */
    uint64_t device_bytes;  /* predicted peak; 0: not known, and not judged */
    uint64_t spilled_bytes; /* predicted: memory that spills nevertheless */
    uint64_t lacked_bytes;  /* that earlier choices lacked; the next choice leaves them free */
    unsigned failures;      /* choices that did not do; after SPW_CLI_KEEP_TRIES, it is given up */
    int code;               /* exit code of the command without the choice */
};

/* Write and read the line. _read returns false if it is not such a line. */
void spw_cli_keep_state_write(const struct spw_cli_keep_state *state,
                              char ret_text[SPW_CLI_KEEP_STATE]);
bool spw_cli_keep_state_read(const char *text, struct spw_cli_keep_state *ret_state);

/* The results of a run that judge a choice. */
struct spw_cli_keep_run {
    enum spw_cli_sim_outcome outcome;
    int code;
    uint64_t spilled_bytes; /* highest bytes on the host that no rule placed there */
    uint64_t refused_bytes; /* of the latest refused request; 0: none */
};

enum spw_cli_keep_verdict {
    SPW_CLI_KEEP_GOOD,
    SPW_CLI_KEEP_SPILLED, /* more than predicted */
    SPW_CLI_KEEP_REFUSED, /* the program was refused memory */
    SPW_CLI_KEEP_FAILED,  /* the program failed otherwise than without the choice */
};

/* Judges a run with the kept choice, and writes how many bytes it lacked. */
enum spw_cli_keep_verdict spw_cli_keep_judge(const struct spw_cli_keep_state *state,
                                             const struct spw_cli_keep_run *run,
                                             uint64_t *ret_lacked);

/* The times of a run that spilled, in nanoseconds a step. */
struct spw_cli_keep_times {
    uint64_t measured; /* by the clock of the run; 0: not known */
    uint64_t held;     /* the part during which moves held submissions back; 0: not known */
    uint64_t kernels;  /* of the cost model: its kernels alone; 0: not known */
    uint64_t spilling; /* of the cost model: least cost of spilling */
};

/* Returns the time of a step with ample memory, which no run has measured: the measured time less
 * the time of spilling, and at least the time of the kernels. Returns 0 if nothing is known. */
uint64_t spw_cli_keep_ample_ns(const struct spw_cli_keep_times *times);
