/* Memory that a process shares with its forked children. Unlike a pipe it needs no descriptor, and
 * its content is complete once the child has ended. No locking. */
#pragma once

#include <stddef.h>

/* Maps `bytes` of zeros. NULL with errno set when there is no memory. */
void *spw_cli_shared_map(size_t bytes);

/* Unmaps the memory. Takes NULL. */
void spw_cli_shared_unmap(void *memory, size_t bytes);
