/* Memory over time on the page, collected while the recording is read once. One thread. */
#pragma once

#include "cli/report/page_text.h"
#include "cli/report/report.h"

/* Time is divided into windows. Each keeps the moment of its peak and the moment at its end, so
 * that every peak is there. */
struct spw_cli_page_moments;

/* For a device of a categorised report, whose state must be that at the end. `devices`: number of
 * shown devices, which share a limit on windows and sites. NULL without memory. */
struct spw_cli_page_moments *spw_cli_page_moments_create(const struct spw_cli_report *report,
                                                         int ordinal, unsigned devices);
void spw_cli_page_moments_free(struct spw_cli_page_moments *moments);

/* Takes an event of that device, after the state has taken it. */
void spw_cli_page_moments_take(struct spw_cli_page_moments *moments,
                               const struct spw_cli_report *report,
                               const struct spw_cli_event *event,
                               const struct spw_cli_block *freed);

/* Writes ", KEY: ..." for call sites, moments, committed memory and moves. The frames of the sites
 * go into `frames`. */
void spw_cli_page_moments_write(const struct spw_cli_page_moments *moments,
                                struct spw_cli_report *report, struct spw_cli_page_frames *frames);
