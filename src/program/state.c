#include "program/state.h"

struct spw_program spw_program;
