/* Starts the recording that the user asks for. */
#pragma once

#include "driver/driver.h"

/* Begins the recording if the user wants one. The statistics must have started. */
void spw_setup_recording(struct spw_driver *driver);
