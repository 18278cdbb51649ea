/* `spillway fit`: the largest variation of a command that fits a card. It does not know real cards.
 *
 *   cards       the cards that are asked about
 *   session     the arguments of the call, and the runs so far
 *   table       prints the answers, also as JSON
 *   variation   the number of a command that varies
 *
 * One thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/fit/cards.h"
#include "cli/fit/variation.h"
#include "cli/verdict/sim_result.h"
#include "cli/verdict/trial.h"

/* A run on a simulated GPU with more memory than the command can need. */
struct spw_cli_fit_run {
    const struct spw_gpu_profile *card;
    size_t value; /* index of the varied value */
    int code;     /* of the command */
    enum spw_cli_sim_outcome outcome;
    struct spw_cli_sim_result result;
    char last_line[SPW_CLI_TRIAL_LINE]; /* that the command wrote to stderr */
};

struct spw_cli_fit_session {
    const char *command; /* for messages */
    char **arguments;
    bool with_pool;
    bool spills;         /* the user allows spilling */
    uint64_t host_bytes; /* host memory that may be used */
    struct spw_cli_fit_cards cards;
    struct spw_cli_fit_variation variation;
    struct spw_cli_trials trials;
    struct spw_cli_fit_run *runs; /* in the order of execution */
    size_t run_count;
    unsigned tries; /* runs of both kinds */
    int start_code; /* exit code of the last run that failed to start */
};

/* The verdict for one card and one value. */
enum spw_cli_fit_verdict {
    SPW_CLI_FIT_FITS,      /* even in the upper bound */
    SPW_CLI_FIT_TIGHT,     /* by the estimate, but not in the upper bound */
    SPW_CLI_FIT_SPILLS,    /* with memory on the host */
    SPW_CLI_FIT_TOO_SMALL, /* not */
    SPW_CLI_FIT_FAILED,    /* it failed, and not for lack of memory */
    SPW_CLI_FIT_UNUSED,    /* it ended well and used no device */
    SPW_CLI_FIT_UNKNOWN,   /* interrupted, or the run was not recorded */
};

/* In bytes. */
struct spw_cli_fit_answer {
    enum spw_cli_fit_verdict verdict;
    uint64_t need, need_most;                /* of the card, without spilling */
    uint64_t placed;                         /* on the host, by rules of the policy */
    uint64_t spilled;                        /* SPILLS: on the host at one time, at most */
    uint64_t to_host_bytes, from_host_bytes; /* SPILLS and was_run: in the whole run */
    int code;                                /* FAILED: exit code of the command */
    bool was_run;                            /* on this card; false: the answer is computed */
};

/* Finds the answer for a card; runs the command only if no earlier run decides it. */
struct spw_cli_fit_answer spw_cli_fit_ask(struct spw_cli_fit_session *session,
                                          const struct spw_gpu_profile *card, size_t value);

/* ": " and the last line on stderr of a failed run; "" if there is none. */
const char *spw_cli_fit_failure(const struct spw_cli_fit_session *session, size_t value);

/* The answer of a run for its own GPU; the verdict is FITS or FAILED. */
struct spw_cli_fit_answer spw_cli_fit_measured(const struct spw_cli_fit_run *run);

/* True if the command fits by the estimate, or uses no device. */
bool spw_cli_fit_is_good(const struct spw_cli_fit_answer *answer);
