/* Replaces memory that is shared with another process by zeroed memory of this process. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/mman.h>

/* Replaces the pages at `address`, which no other thread may be using. If the kernel refuses,
 * returns false and changes nothing. Only async-signal-safe calls. */
static inline bool spw_stats_remap_zeroed(void *address, size_t bytes)
{
    int flags = MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE;

    /* RLIMIT_DATA limits private memory only. */
    return mmap(address, bytes, PROT_READ | PROT_WRITE, flags | MAP_PRIVATE, -1, 0) != MAP_FAILED ||
           mmap(address, bytes, PROT_READ | PROT_WRITE, flags | MAP_SHARED, -1, 0) != MAP_FAILED;
}
