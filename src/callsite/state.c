#include "callsite/state.h"

struct spw_callsite_state spw_callsite_state;
