/* Libraries whose GPU work does not come through the entries (unseen.def).
 *
 * A move between device and host holds submissions back while it changes the memory behind an
 * address. Unseen work cannot be held back, so nothing moves any more once such a library is
 * loaded. Blocks on the host stay there, and new ones may be placed there.
 *
 * Locking: none; it must be called without a lock, since it calls the dynamic loader. */
#pragma once

#include <stdbool.h>

/* True from the first call after such a library was loaded. Reads the loader's list only when it
 * has changed. */
bool spw_process_unseen(void);
