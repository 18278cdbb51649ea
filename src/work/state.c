#include "work/state.h"

struct spw_work spw_work;
