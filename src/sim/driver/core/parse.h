/* Numbers and sizes as people write them in variables. No locking, no allocation. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* A size: so many bytes, or a share of something. */
struct sim_size {
    uint64_t bytes;
    uint32_t permille; /* of the whole, when not 0; then `bytes` is 0 */
};

/* A whole number in decimal digits. False if it is none or does not fit. */
bool sim_parse_number(const char *text, uint64_t *ret_value);

/* 8GiB, 1.5G, 512 MiB, 1048576, 80%, 12.5%: units K, M, G, T with or without iB, all powers of
 * 1024; blanks around the unit are ignored. A percentage counts to a tenth and is above 0. False
 * if it is none or does not fit. */
bool sim_parse_size(const char *text, struct sim_size *ret_size);

/* The bytes it comes to, of `whole` where it is a share. */
uint64_t sim_size_of(const struct sim_size *size, uint64_t whole);
