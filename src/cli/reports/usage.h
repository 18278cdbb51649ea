/* The memory that a program used, from a recording or from a statistics file (usage_file.h), in the
 * form for checks and comparisons. One thread, one recording at a time. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "callsite/label.h"
#include "callsite/text.h"
#include "cli/recording/category.h"

/* A line of the program: all call sites with equal Python frames, autograd node and operator. */
struct spw_cli_line {
    char label[SPW_CALLSITE_LABEL];
    uint64_t hash;   /* of the identity */
    char *identity;  /* frames with lines, without directories */
    char *family;    /* the identity without lines */
    char *text;      /* of its largest call site, as in `spillway sites --full` */
    uint32_t *lines; /* of the frames, innermost first */
    size_t line_count;
    uint64_t at_peak; /* bytes at the device's peak */
    uint64_t peak;    /* the largest peak of one of its call sites */
    uint64_t allocs;
    uint64_t growth; /* bytes a step */
};

struct spw_cli_device_usage {
    bool used;
    uint64_t peak;      /* most live bytes */
    uint64_t spilled;   /* bytes moved to the host, in all */
    uint64_t host_peak; /* most bytes on the host at one time */
    uint64_t growth;    /* bytes a step */
    uint64_t at_peak[SPW_CLI_CATEGORIES];
    uint64_t most[SPW_CLI_CATEGORIES]; /* each category when it was largest */
    struct spw_cli_line *lines;
    size_t line_count;
};

struct spw_cli_usage {
    const char *path;
    int64_t rank; /* of the process in its job; -1: none is named */
    bool is_recording;
    bool has_sites, has_categories;
    size_t steps;
    const char *steps_kind;
    char gap[256];  /* why the file is incomplete; "": it is complete */
    char note[256]; /* another remark, or "" */
    struct spw_cli_device_usage *devices;
    int device_count;
};

/* Frees the devices with their lines. */
void spw_cli_usage_free(struct spw_cli_usage *usage);

/* Adds a call site to its line, for the readers. `label`: NULL for the label of the facts. False
 * without memory. */
bool spw_cli_usage_add(struct spw_cli_device_usage *device, const struct spw_callsite_facts *facts,
                       const char *api, const char *label, const struct spw_cli_line *figures);
