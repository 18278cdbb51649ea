/* The memory that a program used, in the form that checks and comparisons need, read from a
 * recording or from a statistics file. One thread, one recording at a time. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "callsite/label.h"
#include "callsite/text.h"
#include "cli/recording/category.h"

/* A line of the program: the call sites that have its Python frames, autograd node and operator. */
struct spw_cli_line {
    char label[SPW_CALLSITE_LABEL];
    uint64_t hash;   /* of the identity */
    char *identity;  /* frames with lines; directories are left out */
    char *family;    /* the same without lines */
    char *text;      /* of its largest call site, as `spillway sites --full` prints it */
    uint32_t *lines; /* of the frames, innermost first */
    size_t line_count;
    uint64_t at_peak; /* bytes when the device held most */
    uint64_t peak;    /* the most that one of its call sites held */
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
    int64_t rank; /* of the process in its job; -1: it says none */
    bool is_recording;
    bool has_sites, has_categories;
    size_t steps;
    const char *steps_kind;
    char gap[256];  /* why the file does not tell everything; "": it does */
    char note[256]; /* another remark, or "" */
    struct spw_cli_device_usage *devices;
    int device_count;
};

/* Reads a file of either kind. False after a line on stderr. The caller frees *ret_usage. */
bool spw_cli_usage_load(const char *command, const char *path, struct spw_cli_usage *ret_usage);
void spw_cli_usage_free(struct spw_cli_usage *usage);

/* For the readers: adds a call site to its line. `label` is NULL for that of the facts. False
 * without memory. */
bool spw_cli_usage_add(struct spw_cli_device_usage *device, const struct spw_callsite_facts *facts,
                       const char *api, const char *label, const struct spw_cli_line *figures);

/* The reader of recordings (usage_recording.c). */
bool spw_cli_usage_of_recording(const char *command, const char *path,
                                struct spw_cli_usage *ret_usage);
