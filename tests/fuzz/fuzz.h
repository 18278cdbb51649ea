/* Common to the fuzz targets: each defines LLVMFuzzerTestOneInput, which libFuzzer calls with
 * inputs that it makes, and replay.c with those that were kept. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* Ends the run when a property does not hold; in release builds too. */
#define FUZZ_REQUIRE(condition)                                                                    \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

/* Runs one input; 0. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
