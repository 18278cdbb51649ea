/* Counts the code objects that the interpreter frees. As long as no code object is freed, a known
 * address has the same code object as before. Its texts never change.
 *
 * The interpreter frees a code object by the function in a slot of the type of code objects. That
 * function is replaced once, permanently, by one that counts and then calls it. The interpreter's
 * own lock makes the count visible to the thread that uses the memory next.
 *
 * Locking: none. */
#pragma once

#include <stdint.h>

/* Begins to count. `code_type` is the address of the type of code objects. The caller is the only
 * thread that calls this. Later calls do nothing. */
void spw_callsite_code_frees_count(uintptr_t code_type);

/* Returns a number that grows when a code object is freed; 0 if this is not known, because another
 * library has replaced the function. Called only after spw_callsite_code_frees_count. */
uint64_t spw_callsite_code_frees(uintptr_t code_type);
