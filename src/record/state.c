#include "record/state.h"

struct spw_record spw_record;
