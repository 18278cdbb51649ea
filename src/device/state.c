#include "device/state.h"

struct spw_devices spw_devices = {.fault_explained = PTHREAD_ONCE_INIT};
