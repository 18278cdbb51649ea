#include "serve/state.h"

struct spw_serve spw_serve = {.object = {.once = PTHREAD_ONCE_INIT}};
