/* Tests limits on the memory of a program against its recording or its statistics file, for
 * continuous integration. One thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/recording/category.h"
#include "cli/usage/usage.h"

enum { SPW_CLI_LIMITS = 256, SPW_CLI_LIMIT_TEXT = 512 };

enum spw_cli_limit_kind {
    SPW_CLI_LIMIT_PEAK,     /* most live bytes of a device */
    SPW_CLI_LIMIT_SPILL,    /* bytes moved to the host */
    SPW_CLI_LIMIT_GROWTH,   /* bytes a step */
    SPW_CLI_LIMIT_INCREASE, /* rise of the peak since an earlier run */
    SPW_CLI_LIMIT_SITE,     /* bytes of the call sites that match a pattern */
    SPW_CLI_LIMIT_CATEGORY, /* largest bytes of a category */
};

struct spw_cli_limit {
    enum spw_cli_limit_kind kind;
    uint64_t bytes;
    const char *pattern; /* SITE */
    enum spw_cli_category category;
};

/* The result of a limit's test on one device. */
struct spw_cli_finding {
    char name[SPW_CLI_LIMIT_TEXT]; /* --max-site train.py=1GiB */
    int device;
    bool holds, known; /* a limit on an unknown figure does not hold */
    uint64_t bytes, limit;
    char text[SPW_CLI_LIMIT_TEXT]; /* a sentence without the file's name */
    char site[SPW_CALLSITE_LABEL]; /* the largest call site; "": none */
};

struct spw_cli_check {
    const struct spw_cli_usage *usage, *base; /* base: NULL unless a limit is an INCREASE */
    struct spw_cli_limit limits[SPW_CLI_LIMITS];
    size_t limit_count;
    struct spw_cli_finding *findings; /* owned */
    size_t finding_count;
};

/* Tests all limits. False without memory. */
bool spw_cli_check_run(struct spw_cli_check *check);
size_t spw_cli_check_failures(const struct spw_cli_check *check);
void spw_cli_check_free(struct spw_cli_check *check);

/* Write the results. _print writes a line on stdout for each limit that does not hold. _print_json
 * writes JSON on stdout. _write_junit writes a JUnit file; false, with errno set, on failure. */
void spw_cli_check_print(const struct spw_cli_check *check);
void spw_cli_check_print_json(const struct spw_cli_check *check);
bool spw_cli_check_write_junit(const struct spw_cli_check *check, const char *path);
