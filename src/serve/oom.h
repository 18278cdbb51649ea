/* The out-of-memory report: what was asked, who asked, who holds the memory, and the rule that
 * would have helped; on stderr, and in the statistics.
 *
 * In full once for each call site, later one line. No locking: while one thread reports, others
 * write their line only. Not to be called with a lock held, for names are looked up. */
#pragma once

#include "track/process.h"

/* A request that is refused. */
struct spw_oom {
    struct spw_device *device;
    struct spw_pool *pool;
    const char *api; /* the function that the program called */
    uint64_t bytes;
    uint64_t missing_bytes;
    uint32_t site;
    bool overcome; /* the caller is known to give up memory now and to ask again */
};

/* Writes what follows the one line, if the site has not been reported yet, and notes it for the
 * statistics file. */
void spw_serve_oom_report(const struct spw_oom *oom);
