/* Conditions that nearly always hold, or nearly never: the compiler keeps the other path out of the
 * way. Pure. */
#pragma once

#define SPW_LIKELY(condition)   __builtin_expect(!!(condition), 1)
#define SPW_UNLIKELY(condition) __builtin_expect(!!(condition), 0)
