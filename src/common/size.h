/* Sizes as people write them: 8GiB, 512MiB, 80%, 1048576. No locking, no allocation. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SPW_SIZE_TEXT = 32 };

/* Parses "123", "8GiB", "24GB", "1.5g", "512 MiB", "80%". The units are B, and K, M, G, T, alone or
 * with B or iB; all are powers of 1024, as cards of 24 GB have 24 GiB. For a percentage,
 * *ret_percent is true and *ret_bytes is in tenths of a percent. Returns false if the text is not a
 * size, is negative, or does not fit 64 bits. */
bool spw_size_parse(const char *text, uint64_t *ret_bytes, bool *ret_percent);

/* Writes "5.15 GiB", "512 MiB", "96 KiB" or "17 B" to `text` and returns it. */
const char *spw_size_text(uint64_t bytes, char text[SPW_SIZE_TEXT]);
