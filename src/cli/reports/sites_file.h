/* The sites of a statistics file, as `spillway sites` shows them. One thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "callsite/text.h"

struct cJSON;

/* One entry of the file's sites: a call site on a device, or what is left of a device's. */
struct spw_cli_sites_entry {
    const struct cJSON *json;
    uint64_t id;   /* 0: allocations whose stack is not known */
    uint64_t rest; /* sites that are summed up here; 0: this is one site */
    int device;
    uint64_t live_bytes, peak_bytes, device_peak_bytes, allocs, frees;
    struct spw_callsite_facts facts; /* symbols in readable form */
    const char *api;
    struct spw_python_frame *python;
    struct spw_native_frame *native;
    char **symbols; /* owned texts of `native` */
};

struct spw_cli_sites_file {
    struct cJSON *json;
    struct spw_cli_sites_entry *entries;
    size_t count;
};

/* Reads a file and looks up the symbols that it lacks. False, with one line on stderr, when it
 * cannot be read or has no sites. */
bool spw_cli_sites_file_load(const char *path, struct spw_cli_sites_file *ret_file);

/* Frees what was loaded. */
void spw_cli_sites_file_free(struct spw_cli_sites_file *file);
