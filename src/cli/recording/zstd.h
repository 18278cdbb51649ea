/* Compression by libzstd, which is loaded at the first use. One thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* False when this machine has no libzstd.so.1. */
bool spw_cli_zstd_open(void);

/* _compress writes at most `capacity` bytes, and returns their number, or 0 on failure. _decompress
 * is true if the result has exactly `bytes`. */
size_t spw_cli_zstd_compress(void *to, size_t capacity, const void *from, size_t bytes);
bool spw_cli_zstd_decompress(void *to, size_t bytes, const void *from, size_t stored);
