#include "policy/state.h"

struct spw_policy_state spw_policy_state;
