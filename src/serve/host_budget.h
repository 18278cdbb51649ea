/* How much host memory there is: on the simulated GPU the machine is simulated as well. No lock. */
#pragma once

#include "migrate/host_memory.h"

/* Fills *ret_memory as spw_migrate_host_memory does; of a simulated machine all is available, since
 * nobody knows what is taken of it. */
void spw_serve_host_memory(struct spw_migrate_host_memory *ret_memory);
