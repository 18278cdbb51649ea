/* Collects the call sites of a recording while the recording is read, and describes them. Only one
 * recording can be open at a time, because the tables of src/callsite are global. One thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "callsite/facts.h"
#include "cli/recording/events.h"

struct spw_cli_recorded_sites;

/* Returns NULL if memory runs out. */
struct spw_cli_recorded_sites *spw_cli_recorded_sites_create(void);
void spw_cli_recorded_sites_free(struct spw_cli_recorded_sites *sites);

/* Takes an event that defines a text, a library, a call site or the tag of a call site. If the
 * tables are full, a further site becomes "not known". */
void spw_cli_recorded_sites_take(struct spw_cli_recorded_sites *sites,
                                 const struct spw_cli_event *event);

/* _number returns the number of a site in these tables, or 0 if the site is not known. Numbers run
 * from 1 to spw_cli_recorded_sites_count without gaps. `recorded` is the number of the site in the
 * recording. */
uint32_t spw_cli_recorded_sites_number(const struct spw_cli_recorded_sites *sites,
                                       uint64_t recorded);
uint32_t spw_cli_recorded_sites_count(const struct spw_cli_recorded_sites *sites);

/* Makes the sites ready for description. Call it after all sites have been taken. Returns false on
 * failure. */
bool spw_cli_recorded_sites_ready(struct spw_cli_recorded_sites *sites);

/* Writes the label of a site (callsite/label.h). `ret_label` has SPW_CALLSITE_LABEL bytes. The
 * label is safe to print on a terminal. */
void spw_cli_recorded_sites_label(uint32_t number, char *ret_label);

/* Describes a site, including its native frames. Returns false for site 0. The strings stay valid
 * until the process ends. */
bool spw_cli_recorded_sites_describe(uint32_t number, struct spw_callsite_words *ret_words);

/* A stack frame, in a form that all output formats use. */
struct spw_cli_frame {
    char name[256]; /* of the function */
    char file[512]; /* the source file, or the library */
    uint32_t line;  /* 0: a native frame, or not known */
    bool native;
    bool wrapper; /* only calls the function that it wraps (wrappers.def) */
};

enum { SPW_CLI_FRAMES = SPW_CALLSITE_PYTHON + SPW_CALLSITE_NATIVE + 4 };

/* What the frames of a site include. */
enum spw_cli_shown {
    SPW_CLI_SHOWN_KNOWN,    /* PyTorch's operator and autograd node, and Python without wrappers.
                             * Nodes of the backward pass are below "backward pass" and, if it is
                             * known, below their line of the forward pass. */
    SPW_CLI_SHOWN_WRAPPERS, /* the same with wrappers */
    SPW_CLI_SHOWN_NATIVE,   /* all Python frames and all native frames */
};

/* Writes the frames of a site, innermost first, and returns their number. A site without Python
 * frames, operator and node has its native frames in any case. If a site has no frames, writes one
 * frame: the function that the program called, or "not known". */
unsigned spw_cli_recorded_sites_frames(uint32_t number, enum spw_cli_shown shown,
                                       struct spw_cli_frame *ret_frames);

/* Returns the name of the function that the program called, or "" for site 0. */
const char *spw_cli_recorded_sites_api(uint32_t number);
