/* The memory that a program used, in a form for checks and comparisons. It does not know simulated
 * runs.
 *
 *   check                 tests limits on a program's memory
 *   check_output          prints the result of a check as text, JSON or JUnit
 *   difference            matches the lines of two runs
 *   difference_output     prints the difference of two runs
 *   job_summary           a summary at the end of a job of several ranks
 *   merged_ranks          merges the memory of the ranks of one job
 *   merged_ranks_output   prints the merged ranks as text or JSON
 *   sites_file            reads the call sites of a statistics file
 *   usage                 the lines of a program, and the memory that each used
 *   usage_file            reads usage from a recording or a statistics file
 *
 * One thread, one recording at a time. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "callsite/label.h"
#include "callsite/text.h"
#include "cli/recording/category.h"

/* A line of the program. It stands for all call sites that have the same Python frames, autograd
 * node and operator. */
struct spw_cli_usage_line {
    char label[SPW_CALLSITE_LABEL];
    uint64_t hash;   /* hash of `identity` */
    char *identity;  /* frames with line numbers, without directories */
    char *family;    /* `identity` without line numbers */
    char *text;      /* the line's largest call site, as `spillway sites --full` prints it */
    uint32_t *lines; /* line numbers of the frames, innermost first */
    size_t line_count;
    uint64_t at_peak; /* bytes at the device's peak */
    uint64_t peak;    /* the highest peak of any one of the line's call sites */
    uint64_t allocs;
    uint64_t growth; /* bytes per step */
};

struct spw_cli_device_usage {
    bool used;
    uint64_t peak;                        /* most live bytes */
    uint64_t spilled;                     /* total bytes moved to the host */
    uint64_t host_peak;                   /* highest bytes on the host at one time */
    uint64_t growth;                      /* bytes per step */
    uint64_t at_peak[SPW_CLI_CATEGORIES]; /* bytes of each category at the device's peak */
    uint64_t most[SPW_CLI_CATEGORIES];    /* the highest bytes of each category */
    struct spw_cli_usage_line *lines;
    size_t line_count;
};

struct spw_cli_usage {
    const char *path;
    int64_t rank; /* rank of the process in its job; -1: not known */
    bool is_recording;
    bool has_sites, has_categories;
    size_t steps;
    const char *steps_kind;
    char gap[256];  /* why the file is incomplete; "": it is complete */
    char note[256]; /* another remark, or "" */
    struct spw_cli_device_usage *devices;
    int device_count;
};

/* Reads a recording or a statistics file. On failure, writes a line to stderr and returns false.
 * The caller frees *ret_usage. */
bool spw_cli_usage_load(const char *command, const char *path, struct spw_cli_usage *ret_usage);
void spw_cli_usage_free(struct spw_cli_usage *usage);

/* Adds a call site to its line. Only the readers of files call this function. If `label` is NULL,
 * the label is made from `facts`. Returns false if memory runs out. */
bool spw_cli_usage_add(struct spw_cli_device_usage *device, const struct spw_callsite_facts *facts,
                       const char *api, const char *label,
                       const struct spw_cli_usage_line *figures);

/* At the end of a job under `spillway run`, writes one line to stderr that compares the peaks of
 * the ranks in the run directory. Writes nothing if there are fewer than two ranks or if the user
 * has disabled the summary. */
void spw_cli_job_summary(void);
