#include "torch/state.h"

struct spw_torch spw_torch;
