/* Starts the recording that the user requests. */
#pragma once

#include "driver/driver.h"

/* Starts the recording, if the user requests one. The statistics must have started. */
void spw_setup_recording(struct spw_driver *driver);
