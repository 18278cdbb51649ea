/* The exported entries: one function per row of functions.def, under the row's own name.
 *
 * No locking: the tables are constant. */
#pragma once

#include "driver/driver.h"

/* The address of our entry for a row. */
void *spw_intercept_entry_address(enum spw_fn fn);

/* The row whose entry is at `address`; SPW_FN_COUNT if there is none. */
enum spw_fn spw_intercept_entry_find(const void *address);
