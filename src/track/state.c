#include "track/state.h"

struct spw_process spw_process;
