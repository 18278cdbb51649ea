/* Compression by libzstd, which is loaded at the first use. One thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* False when this machine has no libzstd.so.1. */
bool spw_cli_zstd_open(void);

/* Compresses into at most `capacity` bytes. Returns the number of bytes; 0 on failure. */
size_t spw_cli_zstd_compress(void *to, size_t capacity, const void *from, size_t bytes);

/* Decompresses. True if the result has exactly `bytes`. */
bool spw_cli_zstd_decompress(void *to, size_t bytes, const void *from, size_t stored);
