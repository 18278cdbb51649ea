/* Reads call sites and their symbols from a statistics file. One thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "callsite/text.h"

struct cJSON;

/* One entry of the file: a call site on a device, or the sum of all remaining sites of the
 * device. */
struct spw_cli_sites_entry {
    const struct cJSON *json;
    uint64_t id;   /* 0: allocations whose stack is not known */
    uint64_t rest; /* number of sites in the sum; 0: this is one site */
    int device;
    uint64_t live_bytes, peak_bytes, device_peak_bytes, allocs, frees;
    struct spw_callsite_facts facts; /* with demangled symbols */
    const char *api;
    struct spw_python_frame *python;
    struct spw_native_frame *native;
    char **symbols; /* names that `native` points to; owned */
};

struct spw_cli_sites_file {
    struct cJSON *json;
    struct spw_cli_sites_entry *entries; /* device memory */
    size_t count;
    struct spw_cli_sites_entry *pinned; /* page-locked host memory; NULL: none */
    size_t pinned_count;
};

/* Reads a file and looks up the symbols that the file lacks. If the file cannot be read, or if
 * `need_sites` is true and the file has no sites, writes a line to stderr and returns false. If the
 * file has no sites, ret_file->entries is NULL. A command that needs no sites also accepts a
 * recording, so its error message names both kinds of file. The caller frees *ret_file. */
bool spw_cli_sites_file_load(const char *command, const char *path, bool need_sites,
                             struct spw_cli_sites_file *ret_file);
void spw_cli_sites_file_free(struct spw_cli_sites_file *file);
