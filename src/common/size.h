/* Sizes as people write them: 8GiB, 512MiB, 80%, 1048576. No locking, no allocation. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SPW_SIZE_TEXT = 32 };

/* Parses "123", "8GiB", "1.5G", "512 MiB", "80%". The units are B, and K, M, G, T with or without
 * iB; they are powers of 1024. For a percentage, *ret_percent is true and *ret_bytes is in tenths
 * of a percent. Returns false if the text is not a size, is negative, or does not fit 64 bits. */
bool spw_size_parse(const char *text, uint64_t *ret_bytes, bool *ret_percent);

/* Writes the likely meaning of an invalid size: "24GiB" for "24GB". Returns NULL if there is
 * none. */
const char *spw_size_meant(const char *text, char meant[SPW_SIZE_TEXT]);

/* Writes "5.15 GiB", "512 MiB", "96 KiB" or "17 B" to `text` and returns it. */
const char *spw_size_text(uint64_t bytes, char text[SPW_SIZE_TEXT]);
