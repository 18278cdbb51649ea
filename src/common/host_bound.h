/* The limit that bounds the host memory for spilled blocks, by name. Values only. */
#pragma once

#include <stdint.h>

enum spw_host_bound {
#define SPW_HOST_BOUND(name, key, text) SPW_HOST_BOUND_##name,
#include "common/host_bound.def"
#undef SPW_HOST_BOUND
    SPW_HOST_BOUND_COUNT
};

/* An amount of host memory, and the limit that it comes from. */
struct spw_host_limit {
    uint64_t bytes;
    enum spw_host_bound bound;
};

/* Returns the smaller of two limits. */
static inline struct spw_host_limit spw_host_limit_least(struct spw_host_limit a,
                                                         struct spw_host_limit b)
{
    return b.bytes < a.bytes ? b : a;
}

/* Return the name of a limit in JSON, and in messages. An unknown number is NONE. Static
 * storage. */
const char *spw_host_bound_key(uint64_t bound);
const char *spw_host_bound_text(uint64_t bound);
