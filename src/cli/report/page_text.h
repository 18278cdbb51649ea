/* Text in the script of the page of `spillway report --html`. One thread. */
#pragma once

#include <stddef.h>

#include "common/write.h"
#include "record/format.h"

enum { SPW_CLI_PAGE_UNITS_IN_US = 1000 / SPW_RECORD_UNIT_NS };

/* Write a string of JSON that cannot end the script around it; a comma, a key and such a string. */
void spw_cli_page_string(struct spw_writer *out, const char *text);
void spw_cli_page_text(struct spw_writer *out, const char *key, const char *text);

/* The frames of all call sites, each text once: sites share most frames. */
struct spw_cli_page_frames;

/* NULL without memory. */
struct spw_cli_page_frames *spw_cli_page_frames_create(void);
void spw_cli_page_frames_free(struct spw_cli_page_frames *frames);

/* The number of a frame's text, from 0 on; SIZE_MAX without memory. New texts beyond a limit share
 * a number. */
size_t spw_cli_page_frames_number(struct spw_cli_page_frames *frames, const char *text);

/* Writes ", "frames": ..." for the texts by number. */
void spw_cli_page_frames_write(const struct spw_cli_page_frames *frames, struct spw_writer *out);
