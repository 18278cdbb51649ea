/* The recording, as the user asks for it. */
#pragma once

#include "driver/driver.h"

/* Begins the recording if there is to be one. The statistics have started. */
void spw_setup_recording(struct spw_driver *driver);
