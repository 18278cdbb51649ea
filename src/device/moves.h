/* Moves in the recording. */
#pragma once

#include "migrate/migrate.h"

/* Writes a migration, and the ranges of neighbouring granules. Called with the tier's lock held. */
void spw_device_record_move(int ordinal, const struct spw_migrate_switched *switched);
