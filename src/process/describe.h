/* Describes the caller of the current call. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Writes a short description of the current call's caller: the source line of `site` or, if it is
 * unknown, the library; and the API. */
void spw_process_describe(uint32_t site, char *text, size_t capacity);
