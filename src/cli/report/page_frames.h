/* The frames of all call sites of the page, each text once: sites share most frames. One
 * thread. */
#pragma once

#include <stddef.h>

#include "common/write.h"

struct spw_cli_page_frames;

/* NULL without memory. */
struct spw_cli_page_frames *spw_cli_page_frames_create(void);
void spw_cli_page_frames_free(struct spw_cli_page_frames *frames);

/* The number of a frame's text, from 0 on; SIZE_MAX without memory. New texts beyond a limit share
 * a number. */
size_t spw_cli_page_frames_number(struct spw_cli_page_frames *frames, const char *text);

/* Writes ", "frames": ..." for the texts by number. */
void spw_cli_page_frames_write(const struct spw_cli_page_frames *frames, struct spw_writer *out);
