#include "device/state.h"

struct spw_devices spw_devices;
