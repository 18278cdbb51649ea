#include "graph/state.h"

struct spw_graph spw_graph;
