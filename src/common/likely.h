/* Marks likely and unlikely conditions. The compiler then moves the rare path out of the way.
 * Pure. */
#pragma once

#define SPW_LIKELY(condition)   __builtin_expect(!!(condition), 1)
#define SPW_UNLIKELY(condition) __builtin_expect(!!(condition), 0)
