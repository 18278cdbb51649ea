/* Tests for continuous integration if a program kept the limits that the user sets on its memory.
 * The memory is read from a recording or a statistics file. One thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/recording/category.h"
#include "cli/usage/usage.h"

enum { SPW_CLI_LIMITS = 256, SPW_CLI_LIMIT_TEXT = 512 };

enum spw_cli_limit_kind {
    SPW_CLI_LIMIT_PEAK,     /* highest live bytes of a device */
    SPW_CLI_LIMIT_SPILL,    /* bytes moved to the host */
    SPW_CLI_LIMIT_GROWTH,   /* bytes per step */
    SPW_CLI_LIMIT_INCREASE, /* rise of the peak compared with an earlier run */
    SPW_CLI_LIMIT_SITE,     /* bytes of the call sites that match a pattern */
    SPW_CLI_LIMIT_CATEGORY, /* highest bytes of a category */
};

struct spw_cli_limit {
    enum spw_cli_limit_kind kind;
    uint64_t bytes;
    const char *pattern; /* SITE */
    enum spw_cli_category category;
};

/* The result of testing one limit on one device. */
struct spw_cli_finding {
    char name[SPW_CLI_LIMIT_TEXT]; /* --max-site train.py=1GiB */
    int device;
    bool holds, known; /* if a figure is not known, its limit does not hold */
    uint64_t bytes, limit;
    char text[SPW_CLI_LIMIT_TEXT]; /* a sentence that does not contain the file's name */
    char site[SPW_CALLSITE_LABEL]; /* the largest call site; "": none */
};

struct spw_cli_check {
    const struct spw_cli_usage *usage, *base; /* base: the earlier run; NULL without an INCREASE */
    struct spw_cli_limit limits[SPW_CLI_LIMITS];
    size_t limit_count;
    struct spw_cli_finding *findings; /* owned */
    size_t finding_count;
};

/* _run tests all limits. It returns false if memory runs out. _failures returns the number of
 * limits that do not hold. _free frees the findings. */
bool spw_cli_check_run(struct spw_cli_check *check);
size_t spw_cli_check_failures(const struct spw_cli_check *check);
void spw_cli_check_free(struct spw_cli_check *check);

/* Write the results. _print writes to stdout one line for each limit that does not hold.
 * _print_json writes JSON to stdout. _write_junit writes a JUnit file. On failure, it sets errno
 * and returns false. */
void spw_cli_check_print(const struct spw_cli_check *check);
void spw_cli_check_print_json(const struct spw_cli_check *check);
bool spw_cli_check_write_junit(const struct spw_cli_check *check, const char *path);
