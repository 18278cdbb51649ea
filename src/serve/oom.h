/* The out-of-memory report, on stderr and in the statistics: the request, its call site, the call
 * sites that hold the memory, and a policy rule that would help.
 *
 * Written in full once for each call site. While one thread writes a report, reports of other
 * threads are left out. Not to be called with a lock held, since names are looked up. */
#pragma once

#include "device/state.h"

/* A refused request. */
struct spw_oom {
    struct spw_device *device;
    struct spw_pool *pool;
    const char *api; /* the function that the program called */
    uint64_t bytes;
    uint64_t missing_bytes;
    uint32_t site;
    bool ruleless; /* no placement of other blocks would have helped */
    bool overcome; /* the caller is known to free memory now and to ask again */
};

/* True when a full report is due: for the first refusal of a call site that is not `overcome`. */
bool spw_serve_oom_is_new(const struct spw_oom *oom);

/* Writes the report, and copies it to the statistics. The caller has written the first line. */
void spw_serve_oom_report(const struct spw_oom *oom);
