/* How calls arrive: exported symbols, dlsym, cuGetProcAddress, fork. It does not know the pool.
 *
 *   dlsym         dlsym and dlvsym, exported
 *   entry         the table of the exported functions
 *   fork          locks around a fork, and the state of the child
 *   gen_entries   writes the exported functions from the rows of functions.def
 *   library       the real functions of the CUDA runtime and of libraries that register memory
 *   resolve       replaces the functions that a resolver returns by spillway's own
 *   runtime       the calls of the CUDA runtime that are in progress
 *   submit        the first step of every call that enqueues work
 *
 * The exported functions are called entries. There is one for each row of driver/functions.def,
 * under the name of the row. gen_entries.py writes the entries and their table at build time.
 *
 * No locking: the table is constant. */
#pragma once

#include "driver/driver.h"

/* The address of each entry, in the order of enum spw_fn. The generated file defines this table. */
extern void (*const spw_intercept_entry_table[SPW_FN_COUNT])(void);

/* The table that the look-ups below read. preload.c sets it to the generated table. The indirection
 * is needed because the entries call the look-ups, so the look-ups must not depend on the
 * entries. */
extern void (*const *const spw_intercept_entries)(void);

/* Returns the address of the entry for a row. */
void *spw_intercept_entry_address(enum spw_fn fn);

/* Returns the row whose entry is at `address`; SPW_FN_COUNT if there is none. */
enum spw_fn spw_intercept_entry_find(const void *address);
