/* Names of functions by address, from the symbols that loaded objects export.
 *
 * Many addresses are looked up together, in one pass over each object's symbols, so that no index
 * is kept. Reads of the objects' memory cannot fault, since an object may be unloaded at any time.
 * No allocation, no lock, no call of the dynamic loader. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "callsite/state.h"

/* Sorts symbols by address, so that spw_callsite_symbols_find finds them, and drops doubles;
 * returns how many are left. */
size_t spw_callsite_symbols_sort(struct spw_symbol *symbols, size_t count);

/* Fills in modules and names of sorted symbols. */
void spw_callsite_symbols_name(struct spw_symbol *symbols, size_t count);

/* The entry of an address among sorted ones; NULL when it is not there. */
const struct spw_symbol *spw_callsite_symbols_find(const struct spw_symbol *symbols, size_t count,
                                                   uintptr_t address);

/* Copies the name of a symbol, cut at `capacity`; "" when it is not known. */
void spw_callsite_symbol_text(const struct spw_symbol *symbol, char *ret_text, size_t capacity);

/* Recognises functions of PyTorch's autograd by their mangled name: apply() of a node
 * (*ret_apply is true, the name is AddmmBackward0), or a step between nodes (InputBuffer::add).
 * Returns false for any other function. */
bool spw_callsite_symbol_node(const char *mangled, bool *ret_apply, char *ret_node,
                              size_t capacity);
