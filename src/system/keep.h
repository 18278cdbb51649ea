/* Keeps memory that is never freed, because something may still write to it. */
#pragma once

/* Keeps an allocation forever. Takes NULL. Remembers the first of these allocations, so that leak
 * checkers do not report them. No locking. */
void spw_keep_for_ever(void *memory);
