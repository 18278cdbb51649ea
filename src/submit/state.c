#include "submit/state.h"

struct spw_submit spw_submit;
