/* The out-of-memory report, on stderr and in the statistics. It names the request, its call site,
 * the call sites that hold the memory, and a policy rule that would help.
 *
 * The full report is written once for each call site. While one thread writes a report, reports of
 * other threads are dropped. Not to be called with a lock held, because the functions look up
 * names. */
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
    bool ruleless; /* another placement of blocks would not have helped, so the report proposes no
                      rule */
    bool overcome; /* the caller is known to free memory now and to repeat the request */
};

/* Returns true if a full report is due: for the first refusal of a call site that is not
 * `overcome`. */
bool spw_serve_oom_is_new(const struct spw_oom *oom);

/* Writes the report, and copies it to the statistics. The caller has already written the first
 * line. */
void spw_serve_oom_report(const struct spw_oom *oom);
