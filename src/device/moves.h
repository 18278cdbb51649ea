/* Writes moves to the recording. */
#pragma once

#include "migrate/migrate.h"

/* Records a migration, with its ranges of neighbouring granules. The caller holds the tier's
 * lock. */
void spw_device_record_move(int ordinal, const struct spw_migrate_switched *switched);
