#include "system/clock.h"

spw_clock_source *_Atomic spw_clock_simulated;
