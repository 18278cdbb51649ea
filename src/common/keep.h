/* Memory that is never freed, since something may still write to it. */
#pragma once

/* Keeps an allocation for ever. Takes NULL. The first ones are remembered, so that tools which look
 * for leaks know them. No locking. */
void spw_keep_for_ever(void *memory);
