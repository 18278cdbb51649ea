/* Text of unknown origin, such as names of files and functions. No locking, no allocation. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SPW_UTF8_LONGEST = 4 }; /* most bytes of a character */

/* Writes a character of at most SPW_UTF8_LONGEST bytes, and returns its length. Writes U+FFFD for
 * codes that no text can contain: zero, half of a surrogate pair, and codes above U+10FFFF. */
size_t spw_utf8_encode(uint32_t code, char *ret_text);

/* Returns the length of the well-formed UTF-8 sequence at the start of a zero-terminated text; 0 if
 * there is none. */
size_t spw_utf8_length(const char *text);

/* Returns the code point of a well-formed sequence of `length` bytes. */
uint32_t spw_utf8_code(const char *text, size_t length);

/* Returns true if a sequence of `length` bytes is not only a visible character: it may be a command
 * for a terminal (C0, DEL, C1), may end a line, or may change the direction of later text. */
bool spw_utf8_is_control(const char *text, size_t length);

/* Makes a text safe for a terminal, in place. Control characters, except those in `keep`, and bytes
 * that are not UTF-8 become '?'. */
void spw_utf8_plain(char *text, const char *keep);
