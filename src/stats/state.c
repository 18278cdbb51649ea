#include "stats/state.h"

struct spw_stats_files spw_stats_files;
