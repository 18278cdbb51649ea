/* Libraries whose GPU work does not come through the entries (unseen.def).
 *
 * A move between device and host holds submissions back while it changes what is behind an address.
 * Work that nobody sees cannot be held back, so nothing moves from the moment at which such a
 * library is loaded, for good. Blocks on the host stay there, and new ones may be placed there.
 *
 * Locking: none; it must be called without a lock, since it asks the dynamic loader. */
#pragma once

#include <stdbool.h>

/* True from the first call after such a library was loaded. Reads the loader's list only when it
 * has changed. */
bool spw_track_unseen(void);
