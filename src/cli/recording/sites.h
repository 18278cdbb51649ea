/* Collects the call sites of a recording while it is read, and describes them. One recording at a
 * time, as the tables of src/callsite are global. One thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "callsite/facts.h"
#include "cli/recording/events.h"

struct spw_cli_recorded_sites;

/* NULL without memory. */
struct spw_cli_recorded_sites *spw_cli_recorded_sites_create(void);
void spw_cli_recorded_sites_free(struct spw_cli_recorded_sites *sites);

/* Takes a text, a library, a call site or its tag. Sites without room in the tables become "not
 * known". */
void spw_cli_recorded_sites_take(struct spw_cli_recorded_sites *sites,
                                 const struct spw_cli_event *event);

/* The number of a site in these tables, from 1 to spw_cli_recorded_sites_count without gaps; 0: not
 * known. `recorded`: the site's number in the recording. */
uint32_t spw_cli_recorded_sites_number(const struct spw_cli_recorded_sites *sites,
                                       uint64_t recorded);
uint32_t spw_cli_recorded_sites_count(const struct spw_cli_recorded_sites *sites);

/* Called when all sites are taken: makes them ready for description. False on failure. */
bool spw_cli_recorded_sites_ready(struct spw_cli_recorded_sites *sites);

/* Writes a site's label (callsite/label.h), in SPW_CALLSITE_LABEL bytes, safe for a terminal. */
void spw_cli_recorded_sites_label(uint32_t number, char *ret_label);

/* Describes a site with its native frames; false for site 0. The strings stay valid until the
 * process ends. */
bool spw_cli_recorded_sites_describe(uint32_t number, struct spw_callsite_words *ret_words);

/* A frame, in a form for all output formats. */
struct spw_cli_frame {
    char name[256]; /* of the function */
    char file[512]; /* the source file, or the library */
    uint32_t line;  /* 0: a native frame, or not known */
    bool native;
};

enum { SPW_CLI_FRAMES = SPW_CALLSITE_PYTHON + SPW_CALLSITE_NATIVE };

/* Writes the frames of a site, innermost first, and returns their number. A site without frames
 * gets one: the function that the program called, or "not known". */
unsigned spw_cli_recorded_sites_frames(uint32_t number, struct spw_cli_frame *ret_frames);

/* The function that the program called, "" for site 0. */
const char *spw_cli_recorded_sites_api(uint32_t number);
