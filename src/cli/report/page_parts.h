/* The parts of the page of `spillway report --html`. page.c assembles the page from them. The
 * events and the moments are collected in a single pass over the recording. One thread. */
#pragma once

#include <stddef.h>

#include "cli/report/report.h"
#include "record/format.h"

enum { SPW_CLI_PAGE_UNITS_IN_US = 1000 / SPW_RECORD_UNIT_NS };

/* _string writes a JSON string, escaped so that it cannot end the script element that contains it.
 * _text writes a comma, a key and a string of this form. */
void spw_cli_page_string(struct spw_writer *out, const char *text);
void spw_cli_page_text(struct spw_writer *out, const char *key, const char *text);

/* Returns a device's part of what all shown devices share, but at least `least` and at most
 * `most`. */
uint64_t spw_cli_page_share(uint64_t of_all, unsigned devices, uint64_t least, uint64_t most);

/* The texts of the stack frames of all call sites. Each text is stored once, because call sites
 * share most of their frames. */
struct spw_cli_page_frames;

/* Returns NULL if memory runs out. */
struct spw_cli_page_frames *spw_cli_page_frames_create(void);
void spw_cli_page_frames_free(struct spw_cli_page_frames *frames);

/* Returns the number of a frame's text, which counts from 0. Returns SIZE_MAX if memory runs out.
 * If the size of all texts reaches a limit, all new texts share one number. The page hides a
 * `wrapper` until the user asks for it. */
size_t spw_cli_page_frames_number(struct spw_cli_page_frames *frames, const char *text,
                                  bool wrapper);

/* Writes ", "frames": ..." with all texts, sorted by number, and ", "wrappers": ..." with the
 * numbers of wrappers. */
void spw_cli_page_frames_write(const struct spw_cli_page_frames *frames, struct spw_writer *out);

/* Collects the top of the page: the verdict, the next steps, and the facts about the run. Verdicts
 * have the words of cli/verdict/brief.c. A recording has no exit code, and no figures of the memory
 * that a card needs for itself. So the verdict is about the program alone. */
struct spw_cli_page_head;

/* Returns NULL if memory runs out. */
struct spw_cli_page_head *spw_cli_page_head_create(void);
void spw_cli_page_head_free(struct spw_cli_page_head *head);

/* Takes an event of any device. */
void spw_cli_page_head_take(struct spw_cli_page_head *head, const struct spw_cli_event *event);

/* Writes ", KEY: ..." for the verdict, the peak, the next steps and the facts. */
void spw_cli_page_head_write(const struct spw_cli_page_head *head, struct spw_cli_report *report);

/* Collects marked parts and steps, failed allocations, and decisions of the policy's rules. */
struct spw_cli_page_events;

/* Returns NULL if memory runs out. */
struct spw_cli_page_events *spw_cli_page_events_create(const struct spw_cli_report *report);
void spw_cli_page_events_free(struct spw_cli_page_events *events);

/* Takes an event of any device. Call it after the state has taken the event. */
void spw_cli_page_events_take(struct spw_cli_page_events *events,
                              const struct spw_cli_report *report,
                              const struct spw_cli_event *event, const struct spw_cli_block *freed);

/* Writes ", KEY: ..." for steps, for parts, for failed allocations and for rules. */
void spw_cli_page_events_write(struct spw_cli_page_events *events, struct spw_cli_report *report);

/* Collects single blocks with their lives: the largest blocks of a device that were live at its
 * peak, and the largest of the others. */
struct spw_cli_page_blocks;

/* The report's state must be the state at the end of the recording. Returns NULL if memory runs
 * out. */
struct spw_cli_page_blocks *spw_cli_page_blocks_create(const struct spw_cli_report *report,
                                                       int ordinal, unsigned devices);
void spw_cli_page_blocks_free(struct spw_cli_page_blocks *blocks);

/* Takes an event of the device. Call it after the state has taken the event. */
void spw_cli_page_blocks_take(struct spw_cli_page_blocks *blocks,
                              const struct spw_cli_report *report,
                              const struct spw_cli_event *event, const struct spw_cli_block *freed);

/* Writes ", KEY: ..." for the blocks and their number. Call it once, at the end of the
 * recording. */
void spw_cli_page_blocks_write(struct spw_cli_page_blocks *blocks, struct spw_cli_report *report,
                               struct spw_cli_page_frames *frames);

/* Writes ", KEY: ..." for the growth of a device from step to step, for the call sites that grow,
 * and for the live memory at the ends of steps. */
void spw_cli_page_growth_write(struct spw_cli_report *report, int ordinal, unsigned devices);

/* Collects memory over time. The time is divided into windows. For each window, two moments are
 * kept: the moment of the window's peak and the moment at the window's end. This way, no peak is
 * lost. */
struct spw_cli_page_moments;

/* spw_cli_report_categorise must have been called for the report, and the report's state must be
 * the state at the end of the recording. `devices` is the number of shown devices, which share one
 * limit on windows and sites. Returns NULL if memory runs out. */
struct spw_cli_page_moments *spw_cli_page_moments_create(const struct spw_cli_report *report,
                                                         int ordinal, unsigned devices);
void spw_cli_page_moments_free(struct spw_cli_page_moments *moments);

/* Takes an event of the device that the moments describe. Call it after the state has taken the
 * event. */
void spw_cli_page_moments_take(struct spw_cli_page_moments *moments,
                               const struct spw_cli_report *report,
                               const struct spw_cli_event *event,
                               const struct spw_cli_block *freed);

/* Writes ", KEY: ..." for call sites, for moments, for committed memory and for moves. Adds the
 * frames of the sites to `frames`. */
void spw_cli_page_moments_write(const struct spw_cli_page_moments *moments,
                                struct spw_cli_report *report, struct spw_cli_page_frames *frames);
