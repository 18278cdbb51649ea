/* The call sites of a recording, collected while it is read, then described. One recording at a
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

/* Takes a text, a library or a call site. Sites that do not fit into the tables become "not
 * known". */
void spw_cli_recorded_sites_take(struct spw_cli_recorded_sites *sites,
                                 const struct spw_cli_event *event);

/* The number by which a site of the recording is known here, from 1 on without gaps; 0: not
 * known. At most spw_cli_recorded_sites_count. */
uint32_t spw_cli_recorded_sites_number(const struct spw_cli_recorded_sites *sites,
                                       uint64_t recorded);
uint32_t spw_cli_recorded_sites_count(const struct spw_cli_recorded_sites *sites);

/* Makes the sites ready to be described: everything was taken. */
bool spw_cli_recorded_sites_ready(struct spw_cli_recorded_sites *sites);

/* Writes the label of a site (callsite/label.h), of SPW_CALLSITE_LABEL bytes, fit for a terminal.
 */
void spw_cli_recorded_sites_label(uint32_t number, char *ret_label);

/* Describes a site with its native frames; false for site 0. Strings stay until the process ends.
 */
bool spw_cli_recorded_sites_describe(uint32_t number, struct spw_callsite_words *ret_words);

/* A frame as all formats need it. */
struct spw_cli_frame {
    char name[256]; /* of the function */
    char file[512]; /* or library */
    uint32_t line;  /* 0: a native frame, or not known */
    bool native;
};

enum { SPW_CLI_FRAMES = SPW_CALLSITE_PYTHON + SPW_CALLSITE_NATIVE };

/* Writes the frames of a site, innermost first; their number. A site
 * without any has one, with the name of the function that was called, or "not known". */
unsigned spw_cli_recorded_sites_frames(uint32_t number, struct spw_cli_frame *ret_frames);

/* The function that the program called, "" for site 0. */
const char *spw_cli_recorded_sites_api(uint32_t number);
