/* Call sites in the statistics: their charges, in memory that others can read. */
#pragma once

#include <stdbool.h>

#include "device/state.h"

/* Begins to record call sites, if the user wants them. The statistics must exist. */
void spw_setup_sites(int devices);

/* Sets the charges of a device; NULL without call sites. */
void spw_setup_sites_charge(struct spw_device *device, int ordinal);

/* In a child after fork: begins new charges in the child's memory. False when there is none. */
bool spw_setup_sites_forget(void);
