/* Text of unknown origin, such as names of files and functions. No locking, no allocation. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* The length of the well-formed UTF-8 sequence at the start of a terminated text; 0 when there is
 * none. */
size_t spw_utf8_length(const char *text);

/* True for a sequence of that length which a terminal may take as a command: C0, DEL, C1. */
bool spw_utf8_is_control(const char *text, size_t length);

/* Makes a text fit for a terminal, in place: control characters, except those in `keep`, and bytes
 * that are not UTF-8 become '?'. */
void spw_utf8_plain(char *text, const char *keep);
