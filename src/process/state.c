#include "process/state.h"

struct spw_process spw_process;
