/* For tests of what is slower under valgrind, or otherwise than the kernel does it. */
#pragma once

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* True if valgrind runs the test. */
static inline bool is_under_valgrind(void)
{
    const char *preload = getenv("LD_PRELOAD");

    return preload != NULL && strstr(preload, "vgpreload") != NULL;
}
