/* The limit on the size of files (RLIMIT_FSIZE). */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>

/* Returns true if a file may have `bytes` bytes. Beyond the limit the kernel would send SIGXFSZ,
 * which ends a program that does not expect the signal. */
static inline bool spw_file_may_have(uint64_t bytes)
{
    struct rlimit limit;

    return getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur >= bytes;
}
