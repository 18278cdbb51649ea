/* `spillway fit`: finds the largest variation of a command that fits a card. It does not know real
 * cards.
 *
 *   cards       the cards that are asked about
 *   fit         declares all functions of the folder
 *   session     the arguments of the call, and the runs so far
 *   table       prints the answers, also as JSON
 *   upgrade     what another cuDNN changes
 *   variation   the number of a command that varies
 *
 * One thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/console/messages.h"
#include "cli/cudnn/choice.h"
#include "cli/verdict/sim_result.h"
#include "cli/verdict/step.h"
#include "cli/verdict/trial.h"
#include "gpu/profile.h"

enum { SPW_CLI_FIT_CARDS = 128, SPW_CLI_FIT_VALUES = 64 };

/* The GPUs that the user asks about. */
struct spw_cli_fit_cards {
    const struct spw_gpu_profile *cards[SPW_CLI_FIT_CARDS]; /* the smallest memory first */
    size_t count;
    bool chosen; /* the user named the GPUs */
};

/* Reads a list of GPU names, separated by commas. NULL stands for all known GPUs. If a name is
 * unknown, writes one line for `command` to stderr and returns false. */
bool spw_cli_fit_cards_read(const char *command, const char *names,
                            struct spw_cli_fit_cards *ret_cards);

/* Return the size of a card's memory, and the part of it that a program can use, in bytes. */
uint64_t spw_cli_fit_card_bytes(const struct spw_gpu_profile *card);
uint64_t spw_cli_fit_card_room(const struct spw_gpu_profile *card);

/* A number in a command that is varied with --vary NAME=VALUE,... A VALUE may be a range such as
 * 1..16. */
struct spw_cli_fit_variation {
    char *name;                       /* NULL: nothing is varied, and there is one value */
    char *values[SPW_CLI_FIT_VALUES]; /* in the order given */
    size_t count;
};

/* Reads the text of --vary. NULL means that nothing is varied. The command must contain {NAME}. If
 * the text is not usable, writes one line for `command` to stderr and returns false. */
bool spw_cli_fit_variation_read(const char *command, const char *text, char **arguments,
                                struct spw_cli_fit_variation *ret_variation);
void spw_cli_fit_variation_fini(struct spw_cli_fit_variation *variation);

/* Returns a copy of the arguments, with {NAME} replaced by a value. Returns NULL if memory runs
 * out. The caller frees the copy with spw_cli_fit_variation_free. */
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
    char last_line[SPW_CLI_TRIAL_LINE]; /* the last line that the command wrote to stderr */
    const char *cudnn;                  /* as in the session */
    char *usage; /* the statistics file of its main process; NULL: none was asked for */
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
    size_t at;          /* index of the card that is asked about; those before it follow */
    unsigned steps;     /* most steps of the bisection to come, with this one */
    int start_code;     /* exit code of the last run that failed to start */
    const char *cudnn;  /* the library that is asked in runs now; NULL: the program's own */
    const char *folder; /* for statistics files; NULL: they are not needed */
};

/* The verdict for one card and one value. */
enum spw_cli_fit_verdict {
    SPW_CLI_FIT_FITS,      /* fits even according to the upper bound */
    SPW_CLI_FIT_TIGHT,     /* fits according to the estimate, but not the upper bound */
    SPW_CLI_FIT_SPILLS,    /* runs with a part of its memory on the host */
    SPW_CLI_FIT_TOO_SMALL, /* does not fit */
    SPW_CLI_FIT_FAILED,    /* failed, but not for lack of memory */
    SPW_CLI_FIT_UNUSED,    /* succeeded, but used no device */
    SPW_CLI_FIT_UNKNOWN,   /* interrupted, or the run was not recorded */
};

/* In bytes. */
struct spw_cli_fit_answer {
    enum spw_cli_fit_verdict verdict;
    uint64_t need, need_most;                /* memory needed on the card, without spilling */
    uint64_t placed;                         /* on the host, by rules of the policy */
    uint64_t spilled;                        /* SPILLS: highest bytes on the host at one time */
    uint64_t to_host_bytes, from_host_bytes; /* SPILLS and was_run: moved in the whole run */
    struct spw_cli_range step;               /* the time of a step with ample memory */
    struct spw_cli_range slowdown; /* SPILLS: the factor by which a step gets longer if the missing
                                    * memory moves out and back in each step */
    int code;                      /* FAILED: exit code of the command */
    bool was_run; /* the command was run on this card; false: the answer is computed */
};

/* Returns the answer for a card. Runs the command only if no earlier run decides the answer. */
struct spw_cli_fit_answer spw_cli_fit_ask(struct spw_cli_fit_session *session,
                                          const struct spw_gpu_profile *card, size_t value);

/* Returns ": " and the last line that the failed run wrote to stderr. Returns "" if there is no
 * such line. */
const char *spw_cli_fit_failure(const struct spw_cli_fit_session *session, size_t value);

/* Returns the answer of a run for its own GPU. The verdict is FITS or FAILED. */
struct spw_cli_fit_answer spw_cli_fit_measured(const struct spw_cli_fit_run *run);

/* Returns true if the command fits according to the estimate, or if it uses no device. */
bool spw_cli_fit_is_good(const struct spw_cli_fit_answer *answer);

/* One row: a card and its answer. */
struct spw_cli_fit_row {
    const struct spw_gpu_profile *card;
    size_t value;     /* index of the varied value that has this answer */
    bool has_value;   /* false: a value is varied, and no value fits */
    size_t too_large; /* if has_too_large: index of the smallest value that is known not to fit */
    bool has_too_large;
    bool too_large_failed; /* the value too_large failed, but not for lack of memory */
    struct spw_cli_fit_answer answer;
};

/* Prints the rows in the given order. If a value is varied, also prints the memory that each value
 * needs. */
void spw_cli_fit_table_print(const struct spw_cli_fit_session *session,
                             const struct spw_cli_fit_row *rows, size_t count);

/* Adds the verdict of a row to a line. */
void spw_cli_fit_verdict_add(struct spw_cli_line *line, const struct spw_cli_fit_row *row);

/* Returns a row as JSON. */
cJSON *spw_cli_fit_row_json(const struct spw_cli_fit_session *session,
                            const struct spw_cli_fit_row *row);

/* Writes the rows to a file as JSON. `upgrade` becomes the member "cudnn", unless it is NULL. If
 * the file cannot be written, writes a line to stderr and returns false. */
bool spw_cli_fit_table_write(const struct spw_cli_fit_session *session,
                             const struct spw_cli_fit_row *rows, size_t count, cJSON *upgrade,
                             const char *path);

/* Prints what changes if another cuDNN is asked: the need of the cards that were run, the verdicts,
 * and the lines of the program whose memory changes most. `rows` and `others` have `count` rows
 * each, for the program's own library and for the other one. Returns the same as JSON. */
cJSON *spw_cli_fit_upgrade_print(const struct spw_cli_fit_session *session,
                                 const struct spw_cli_cudnn_choice *choice,
                                 const struct spw_cli_fit_row *rows,
                                 const struct spw_cli_fit_row *others, size_t count);
