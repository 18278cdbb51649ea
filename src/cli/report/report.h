/* The output forms of `spillway report`, which are made from a recording. It does not know
 * statistics files.
 *
 *   categories     memory by purpose, at the peak and at the end of each step
 *   growth         finds memory that grows from step to step
 *   page           writes the HTML page from its parts
 *   page/advice    the curve of memory against time, and the ways of an advice
 *   page/blocks    the table of single blocks
 *   page/device    a device: its picture, and what belongs to the chosen moment
 *   page/elements  makes the parts of a page, such as a table, and writes sizes
 *   page/embed     writes page.html, with the files that it includes, as C arrays
 *   page/flame     the flame graph
 *   page/job       several recordings side by side, and the difference of two
 *   page/page      the page of `spillway report --html`
 *   page/tables    call sites, marked parts, rules, growth
 *   page/timeline  memory over time, with steps, marks and moves below it
 *   page_blocks    single blocks with their lives
 *   page_events    the events of the page: steps, marks, out of memory
 *   page_file      the file of the page
 *   page_growth    growth from step to step, on the page
 *   page_head      the verdict, the next steps, and the facts about the run
 *   page_moments   memory over time, and its holders at chosen moments
 *   page_parts     declares the parts of the page
 *   page_text      text in the script of a page, and the frames of all call sites
 *   perfetto       trace events for Perfetto
 *   report         reads a recording for the forms of the report
 *   rmm            the log format of RAPIDS' RMM
 *   snapshot       nested lists and dictionaries, as JSON or as a pickle
 *   stacks         stacks with bytes, for flame graphs and speedscope
 *   summary        a recording in a few lines, or as JSON
 *   table          the call sites as a table
 *   viz            a snapshot for PyTorch's memory_viz
 *
 * A recording is read once for the sums and the call sites. Forms that show every event read the
 * recording again. One thread, one recording at a time. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/recording/events.h"
#include "cli/recording/state.h"
#include "system/write.h"

struct spw_cli_categories;
struct spw_cli_growth;

enum { SPW_CLI_EXIT_UNKNOWN = -1 };

struct spw_cli_report {
    const char *path;
    struct spw_cli_events events;
    struct spw_cli_state state;
    char problem[SPW_CLI_BLOCKS_TEXT]; /* why reading stopped early; "": it did not */
    struct spw_writer out;
    size_t top;               /* rows of a table */
    bool without_streams;     /* RMM: every stream is 0 */
    int exit_code;            /* of the program, for the page; SPW_CLI_EXIT_UNKNOWN: not known */
    enum spw_cli_shown shown; /* the frames of stacks */
    uint64_t most_events;     /* memory_viz: limit on the events of a device */
    struct spw_cli_categories *categories; /* NULL: spw_cli_report_categorise was not called */
};

/* Opens and reads a recording. On failure, writes a line to stderr and returns false. */
bool spw_cli_report_open(struct spw_cli_report *report, const char *command, const char *path);
void spw_cli_report_close(struct spw_cli_report *report);

/* Reads all events again, and calls `take` with each event after the state has taken the event.
 * `freed` is the block that the event freed, or NULL if it freed none. */
void spw_cli_report_each(struct spw_cli_report *report,
                         void (*take)(struct spw_cli_report *report,
                                      const struct spw_cli_event *event,
                                      const struct spw_cli_block *freed, void *context),
                         void *context);

/* A call site, and one of the site's figures. */
struct spw_cli_ranked {
    uint32_t site;
    uint64_t bytes;
};
typedef uint64_t spw_cli_weight(const struct spw_cli_device *device, uint32_t site);
/* Returns the sites of a device, sorted by a figure from the largest to the smallest. Sites whose
 * figure is 0 are omitted. The caller frees the list. Returns NULL if memory runs out. */
struct spw_cli_ranked *spw_cli_report_rank(const struct spw_cli_device *device,
                                           spw_cli_weight *weight, size_t *ret_count);

/* _live returns the live bytes of a site. _total returns the total bytes of the site's allocations.
 * Both can be used as a spw_cli_weight, like spw_cli_state_at_peak. */
uint64_t spw_cli_report_live(const struct spw_cli_device *device, uint32_t site);
uint64_t spw_cli_report_total(const struct spw_cli_device *device, uint32_t site);

/* Writes formatted text of at most 2 KiB. */
void spw_cli_report_put(struct spw_cli_report *report, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Converts a time in the recording to microseconds since 1970. */
uint64_t spw_cli_report_us(const struct spw_cli_report *report, uint64_t time);

/* The contents of a page. */
struct spw_cli_pages {
    const char *const *paths; /* of the recordings */
    size_t count;
    enum spw_cli_shown shown;
    int exit_code;      /* of the command that was recorded, or SPW_CLI_EXIT_UNKNOWN */
    const char *advice; /* the answer of `spillway advise`, as JSON; NULL: none */
};

/* Writes one page of HTML with all these recordings to a descriptor, which stays open. The page
 * shows one recording at a time, and compares them. For a recording that cannot be read, writes a
 * line to stderr. Returns false if there is no page, after a line on stderr. */
bool spw_cli_report_pages(const char *command, const struct spw_cli_pages *pages, int fd);

/* The output forms. All of them write to report->out. */
void spw_cli_report_summary(struct spw_cli_report *report); /* for people */
void spw_cli_report_json(struct spw_cli_report *report);
void spw_cli_report_tree(struct spw_cli_report *report);       /* stacks, for people */
void spw_cli_report_site_table(struct spw_cli_report *report); /* all call sites */
void spw_cli_report_folded(struct spw_cli_report *report);     /* stacks at the peak */
void spw_cli_report_speedscope(struct spw_cli_report *report); /* speedscope.app */
void spw_cli_report_perfetto(struct spw_cli_report *report);   /* Chrome's trace events */
void spw_cli_report_rmm(struct spw_cli_report *report);        /* the log of RAPIDS' RMM */
void spw_cli_report_viz(struct spw_cli_report *report); /* PyTorch's memory_viz, as a pickle */
void spw_cli_report_viz_json(struct spw_cli_report *report);
