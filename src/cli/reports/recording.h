/* Reports: results of runs, recordings, checks, comparisons, policies explained. It does not know
 * the arguments of the commands.
 *
 *   cards                    the cards that a simulated device stands for
 *   check                    tests limits on a program's memory
 *   check_output             prints the result of a check as text, JSON or JUnit
 *   comparison               memory that a command needs with and without the pool
 *   difference               matches the lines of two runs
 *   difference_output        prints the difference of two runs
 *   job_summary              a summary at the end of a job of several ranks
 *   merged_ranks             merges the memory of the ranks of one job
 *   merged_ranks_output      prints the merged ranks as text or JSON
 *   need                     memory that a card needs for a program
 *   outcome                  the result of a simulated run in one line
 *   page/embed               writes page.html as C arrays
 *   page/page                the page of `spillway report --html`
 *   policy_decision          explains the decision of a policy
 *   policy_reference         prints the keys of the policy language
 *   policy_schema            writes the JSON schema of policies from the keys
 *   policy_suggestion        proposes a policy that frees device memory
 *   policy_usage             the decisions of a policy, by call site of a statistics file
 *   profiles                 lists the GPUs that can be simulated
 *   progress                 a line of progress every ten seconds
 *   ranks                    a table of ranks that ran one after the other
 *   recording                reads a recording for the forms of `spillway report`
 *   recording_categories     memory by purpose, at the peak and at the end of each step
 *   recording_growth         finds memory that grows from step to step
 *   recording_page           writes the HTML page from its parts
 *   recording_page_events    the events of the page: steps, marks, out of memory
 *   recording_page_frames    the frames of all call sites of the page
 *   recording_page_moments   memory over time, and its holders at chosen moments
 *   recording_page_text      text in the script of a page
 *   recording_perfetto       trace events for Perfetto
 *   recording_rmm            the log format of RAPIDS' RMM
 *   recording_stacks         stacks with bytes, for flame graphs and speedscope
 *   recording_summary        a recording in a few lines, or as JSON
 *   recording_table          the call sites as a table
 *   recording_viz            a snapshot for PyTorch's memory_viz
 *   sim_result               the results that a simulated run left in its run directory
 *   sites_file               reads the call sites of a statistics file
 *   snapshot                 nested lists and dictionaries, as JSON or as a pickle
 *   trial                    runs a command on simulated devices, with settings of each run
 *   usage                    memory that a program used, by its recording or statistics
 *   usage_file               usage from a recording or a statistics file
 *   usage_recording          collects the usage from a recording
 *   verdict                  the verdict of a simulated run, as lines
 *   verdict_json             the verdict of a simulated run, as JSON
 *
 * For `spillway report` a recording is read once for the sums and the call sites; forms that show
 * every event read it again. One thread, one recording at a time. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/recording/events.h"
#include "cli/recording/state.h"
#include "common/write.h"

struct spw_cli_categories;
struct spw_cli_growth;

struct spw_cli_report {
    const char *path;
    struct spw_cli_events events;
    struct spw_cli_state state;
    char problem[SPW_CLI_BLOCKS_TEXT]; /* why reading ended early; "": it did not */
    struct spw_writer out;
    size_t top;                            /* rows of a table */
    bool without_streams;                  /* RMM: every stream is 0 */
    uint64_t most_events;                  /* memory_viz: of a device */
    struct spw_cli_categories *categories; /* NULL: spw_cli_report_categorise was not called */
};

/* Opens and reads a recording. False after a line on stderr. */
bool spw_cli_report_open(struct spw_cli_report *report, const char *command, const char *path);
void spw_cli_report_close(struct spw_cli_report *report);

/* Reads all events again, and calls `take` with each after the state has taken it. `freed` is the
 * block that the event freed, or NULL. */
void spw_cli_report_each(struct spw_cli_report *report,
                         void (*take)(struct spw_cli_report *report,
                                      const struct spw_cli_event *event,
                                      const struct spw_cli_block *freed, void *context),
                         void *context);

/* A site, and one of its figures. */
struct spw_cli_ranked {
    uint32_t site;
    uint64_t bytes;
};
typedef uint64_t spw_cli_weight(const struct spw_cli_device *device, uint32_t site);
/* The sites of a device by a figure, the largest first. The caller frees; NULL without memory. */
struct spw_cli_ranked *spw_cli_report_rank(const struct spw_cli_device *device,
                                           spw_cli_weight *weight, size_t *ret_count);

/* The live bytes of a site, and the sum of its allocations. At the peak: spw_cli_state_at_peak. */
uint64_t spw_cli_report_live(const struct spw_cli_device *device, uint32_t site);
uint64_t spw_cli_report_total(const struct spw_cli_device *device, uint32_t site);

/* Microseconds since 1970 of a time in the recording. */
uint64_t spw_cli_report_us(const struct spw_cli_report *report, uint64_t time);

/* The forms. All write to report->out. */
void spw_cli_report_summary(struct spw_cli_report *report); /* for people */
void spw_cli_report_json(struct spw_cli_report *report);
void spw_cli_report_tree(struct spw_cli_report *report);             /* stacks, for people */
void spw_cli_report_site_table(struct spw_cli_report *report);       /* all call sites */
void spw_cli_report_page(struct spw_cli_report *report);             /* one page of HTML */
void spw_cli_report_folded(struct spw_cli_report *report);           /* stacks at the peak */
void spw_cli_report_speedscope(struct spw_cli_report *report);       /* speedscope.app */
void spw_cli_report_perfetto(struct spw_cli_report *report);         /* Chrome's trace events */
void spw_cli_report_rmm(struct spw_cli_report *report);              /* the log of RAPIDS' RMM */
void spw_cli_report_viz(struct spw_cli_report *report, bool pickle); /* PyTorch's memory_viz */
