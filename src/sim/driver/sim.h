/* The simulated driver's internal seams, all of them: for files that need most.
 *
 * Locking: see entry.h. */
#pragma once

#include "sim/driver/context.h"
#include "sim/driver/device.h"
#include "sim/driver/entry.h"
#include "sim/driver/memory.h"
#include "sim/driver/options.h"
#include "sim/driver/work.h"
