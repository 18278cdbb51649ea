/* `spillway fit`: the largest variation of a command that fits a card. It does not know real cards.
 *
 *   cards       the cards that are asked about
 *   fit         declares all
 *   session     the arguments of the call, and the runs so far
 *   table       prints the answers, also as JSON
 *   variation   the number of a command that varies
 *
 * One thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/verdict/sim_result.h"
#include "cli/verdict/trial.h"
#include "gpu/profile.h"

enum { SPW_CLI_FIT_CARDS = 128, SPW_CLI_FIT_VALUES = 64 };

/* The GPUs that are asked about. */
struct spw_cli_fit_cards {
    const struct spw_gpu_profile *cards[SPW_CLI_FIT_CARDS]; /* the smallest memory first */
    size_t count;
    bool chosen; /* the user named them */
};

/* Reads a list of names, separated by commas; NULL: all known GPUs. False, with one line of
 * `command` on stderr, for an unknown name. */
bool spw_cli_fit_cards_read(const char *command, const char *names,
                            struct spw_cli_fit_cards *ret_cards);

/* The bytes of a card's memory. */
uint64_t spw_cli_fit_card_bytes(const struct spw_gpu_profile *card);

/* A varied number of a command: --vary NAME=VALUE,..., where VALUE may be a range, as 1..16. */
struct spw_cli_fit_variation {
    char *name;                       /* NULL: nothing is varied, and there is one value */
    char *values[SPW_CLI_FIT_VALUES]; /* in the order given */
    size_t count;
};

/* Reads the text; NULL: nothing is varied. The command must contain {NAME}. False, with one line of
 * `command` on stderr, when the text is not usable. */
bool spw_cli_fit_variation_read(const char *command, const char *text, char **arguments,
                                struct spw_cli_fit_variation *ret_variation);
void spw_cli_fit_variation_fini(struct spw_cli_fit_variation *variation);

/* A copy of the arguments with a value in place of {NAME}. NULL without memory. The caller frees it
 * with spw_cli_fit_variation_free. */
char **spw_cli_fit_variation_arguments(const struct spw_cli_fit_variation *variation, size_t value,
                                       char **arguments);
void spw_cli_fit_variation_free(char **arguments);

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
    unsigned tries; /* all runs: with ample memory, and on cards as they are */
    int start_code; /* exit code of the last run that failed to start */
};

/* The verdict for one card and one value. */
enum spw_cli_fit_verdict {
    SPW_CLI_FIT_FITS,      /* fits even by the upper bound */
    SPW_CLI_FIT_TIGHT,     /* fits by the estimate, but not by the upper bound */
    SPW_CLI_FIT_SPILLS,    /* runs with memory on the host */
    SPW_CLI_FIT_TOO_SMALL, /* does not fit */
    SPW_CLI_FIT_FAILED,    /* failed, but not for lack of memory */
    SPW_CLI_FIT_UNUSED,    /* ended well and used no device */
    SPW_CLI_FIT_UNKNOWN,   /* interrupted, or the run was not recorded */
};

/* In bytes. */
struct spw_cli_fit_answer {
    enum spw_cli_fit_verdict verdict;
    uint64_t need, need_most;                /* of the card, without spilling */
    uint64_t placed;                         /* on the host, by rules of the policy */
    uint64_t spilled;                        /* SPILLS: most on the host at once */
    uint64_t to_host_bytes, from_host_bytes; /* SPILLS and was_run: moved in the whole run */
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

/* One row: a card and its answer. */
struct spw_cli_fit_row {
    const struct spw_gpu_profile *card;
    size_t value;     /* index of the varied value that the answer is for */
    bool has_value;   /* false: a value is varied, and none fits */
    size_t too_large; /* index of the smallest value known not to fit, if has_too_large */
    bool has_too_large;
    bool too_large_failed; /* that value failed, but not for lack of memory */
    struct spw_cli_fit_answer answer;
};

/* Prints the rows in their order, and the need of each value if a value is varied. */
void spw_cli_fit_table_print(const struct spw_cli_fit_session *session,
                             const struct spw_cli_fit_row *rows, size_t count);

/* Writes the rows to a file as JSON. False, with a line on stderr, when it cannot be written. */
bool spw_cli_fit_table_write(const struct spw_cli_fit_session *session,
                             const struct spw_cli_fit_row *rows, size_t count, const char *path);
