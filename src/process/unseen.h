/* Libraries whose GPU work does not pass through the entries (unseen.def).
 *
 * A move between device and host blocks submissions while it changes the memory behind an address.
 * Work of these libraries cannot be blocked. Once such a library is loaded, no memory moves any
 * more. Blocks on the host stay there, and new blocks may still be placed there.
 *
 * Locking: none. No lock may be held, because the dynamic loader is called. */
#pragma once

#include <stdbool.h>

/* Returns true from the first call after such a library was loaded. Reads the loader's list only if
 * the list has changed. */
bool spw_process_unseen(void);
