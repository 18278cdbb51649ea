/* Call sites in the statistics: their charges, in memory that others can read. */
#pragma once

#include <stdbool.h>

#include "track/process.h"

/* Begins to record call sites, if the user wants them. The statistics exist. */
void spw_setup_sites(int devices);

/* Gives a device its charges; none are recorded without call sites. */
void spw_setup_sites_charge(struct spw_device *device, int ordinal);

/* In a child after fork: charges begin anew, in memory of its own. False when there is none. */
bool spw_setup_sites_forget(void);
