/* Memory that others get hold of: a network card, a file system, other processes. Locking: the
 * pool's, inside. */
#pragma once

#include "track/process.h"

/* Blocks in [address, address + bytes) are about to be known outside by where they lie: they are
 * not moved from here on, until they are freed, and have their memory. To be called before whoever
 * it is learns of them: no move may slip in between. What is not ours is left alone. */
void spw_intercept_registered_fix(CUdeviceptr address, size_t bytes);
