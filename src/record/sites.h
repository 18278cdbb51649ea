/* Writes each call site to the recording once, before the first event that refers to it. Locking:
 * the caller holds spw_locks.record. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/likely.h"
#include "record/state.h"

/* Writes a site with its texts and modules, if the file has room. */
void spw_record_sites_define(uint32_t site);

/* Writes a site unless an earlier event has referred to it. */
static inline void spw_record_sites_use(uint32_t site)
{
    if (SPW_UNLIKELY(site <= SPW_CALLSITE_MOST && spw_record.known.sites[site] == 0)) {
        spw_record_sites_define(site);
    }
}

/* Forgets which sites were written, for a new file. */
void spw_record_sites_reset(void);
