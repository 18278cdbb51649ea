/* Memory that a process shares with the children that it forks. Unlike a pipe it is never denied,
 * and its content is complete once the child has ended. No locking. */
#pragma once

#include <stddef.h>

/* Maps `bytes` of zeros. NULL with errno set when there is no memory. */
void *spw_cli_shared_map(size_t bytes);

/* Unmaps them. Takes NULL. */
void spw_cli_shared_unmap(void *memory, size_t bytes);
