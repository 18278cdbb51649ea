/* Whether valgrind runs the test, for what valgrind does otherwise than the kernel. */
#pragma once

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static inline bool is_under_valgrind(void)
{
    const char *preload = getenv("LD_PRELOAD");

    return preload != NULL && strstr(preload, "vgpreload") != NULL;
}
