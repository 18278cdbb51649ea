/* Call sites in the statistics, with their charges. They are in memory that other processes can
 * read. */
#pragma once

#include <stdbool.h>

#include "device/state.h"

/* Starts to record call sites, if the user requests them. The statistics must exist. */
void spw_setup_sites(int devices);

/* Sets the charges of a device; NULL if call sites are not recorded. */
void spw_setup_sites_charge(struct spw_device *device, int ordinal);

/* In a child after fork: starts new charges in the child's memory. Returns false if there is no
 * memory for them. */
bool spw_setup_sites_forget(void);
