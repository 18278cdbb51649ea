/* The caller of the call under way, in words. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Describes the caller of the call under way in a few words: the source line of `site`, or else the
 * library; and the API. */
void spw_process_describe(uint32_t site, char *text, size_t capacity);
