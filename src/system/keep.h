/* Memory that is never freed, since something may still write to it. */
#pragma once

/* Keeps an allocation for ever. Takes NULL. Remembers the first such allocations, so that leak
 * checkers do not report them. No locking. */
void spw_keep_for_ever(void *memory);
