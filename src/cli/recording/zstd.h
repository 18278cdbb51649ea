/* Compression by libzstd, which is opened when it is first needed. One thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* False when this machine has no libzstd.so.1. */
bool spw_cli_zstd_open(void);

/* Compresses into at most `capacity` bytes; the number of bytes, 0 when that fails. */
size_t spw_cli_zstd_compress(void *to, size_t capacity, const void *from, size_t bytes);

/* Decompresses; true when the result has exactly `bytes`. */
bool spw_cli_zstd_decompress(void *to, size_t bytes, const void *from, size_t stored);
