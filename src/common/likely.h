/* Conditions that nearly always, or nearly never, hold: the compiler moves the rare path out of the
 * way. Pure. */
#pragma once

#define SPW_LIKELY(condition)   __builtin_expect(!!(condition), 1)
#define SPW_UNLIKELY(condition) __builtin_expect(!!(condition), 0)
