#include "ipc/state.h"

struct spw_ipc spw_ipc;
