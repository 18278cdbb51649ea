#include "service/state.h"

struct spw_service spw_service;
