/* The list of loaded objects that native frames of sites lie in.
 *
 * Objects are added when new sites are found, so that the report at the end of the process need not
 * call the dynamic loader. Unloaded objects stay in the list. Locking: a mutex inside, taken under
 * the loader's lock; spw_callsite_modules_note must not be called with a lock of ours held. A
 * look-up takes no lock. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "callsite/state.h"

/* Adds the objects that were loaded since the last call; cheap when there are none. */
void spw_callsite_modules_note(void);

/* The number of modules, and the module of a number. Numbers start at 0 and never change. */
size_t spw_callsite_modules_count(void);
const struct spw_module *spw_callsite_modules_get(size_t number);

/* Adds a module of another process. Returns false when the list is full. */
bool spw_callsite_modules_add(const struct spw_module *module);

/* For a command that reads the objects of another process: from now on spw_callsite_modules_read
 * calls `read`. */
void spw_callsite_modules_read_with(spw_peek_function *read);

/* Reads memory of a module. Returns false, instead of faulting, if it is not mapped any more. */
bool spw_callsite_modules_read(uintptr_t address, void *ret_bytes, size_t bytes);

/* The module that contains an address: the newest when several do, NULL when none does. */
const struct spw_module *spw_callsite_module_of(uintptr_t address);
