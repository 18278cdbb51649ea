/* CRC-32 (ISO 3309, as in zlib) for the blocks of a recording. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Continues the checksum `crc` with more bytes. The first `crc` is 0. */
uint32_t spw_record_checksum(uint32_t crc, const void *bytes, size_t count);
