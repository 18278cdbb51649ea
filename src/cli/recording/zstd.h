/* Compression with libzstd, which is loaded at the first use. One thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Loads libzstd.so.1. Returns false if this machine does not have it. */
bool spw_cli_zstd_open(void);

/* _compress writes at most `capacity` bytes. It returns the number of written bytes, or 0 on
 * failure. _decompress returns true if the decompressed data has exactly `bytes` bytes. */
size_t spw_cli_zstd_compress(void *to, size_t capacity, const void *from, size_t bytes);
bool spw_cli_zstd_decompress(void *to, size_t bytes, const void *from, size_t stored);
