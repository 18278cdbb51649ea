/* The list of loaded objects that contain the code of native frames.
 *
 * Objects are added when new sites are found. The report at the end of the process therefore need
 * not call the dynamic loader. Unloaded objects stay in the list. Locking: the list has a mutex,
 * which is taken under the loader's lock. spw_callsite_modules_note must not be called with one of
 * spillway's locks held. A look-up takes no lock. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "callsite/state.h"

/* Adds the objects that were loaded since the last call. Cheap if there are none. */
void spw_callsite_modules_note(void);

/* Return the number of modules, and the module with a number. Numbers start at 0 and never
 * change. */
size_t spw_callsite_modules_count(void);
const struct spw_module *spw_callsite_modules_get(size_t number);

/* Adds a module of another process. Returns false if the list is full. */
bool spw_callsite_modules_add(const struct spw_module *module);

/* For a command that reads the objects of another process: makes spw_callsite_modules_read call
 * `read` from now on. */
void spw_callsite_modules_read_with(spw_peek_function *read);

/* Reads memory of a module. If the memory is no longer mapped, returns false instead of
 * faulting. */
bool spw_callsite_modules_read(uintptr_t address, void *ret_bytes, size_t bytes);

/* Returns the module that contains an address; NULL if there is none. If several contain it,
 * returns the newest. */
const struct spw_module *spw_callsite_module_of(uintptr_t address);
