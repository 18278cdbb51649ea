/* The host memory of the machine, which is simulated with a simulated GPU. No lock. */
#pragma once

#include "migrate/host_memory.h"

/* Fills *ret_memory as spw_migrate_host_memory does. All memory of a simulated machine is
 * available, since its use is unknown. */
void spw_serve_host_memory(struct spw_migrate_host_memory *ret_memory);
