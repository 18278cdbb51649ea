/* Finds names of functions by address, in the symbols that loaded objects export.
 *
 * Many addresses are looked up together, in one pass over each object's symbols, so no index is
 * needed. Reads of the objects' memory cannot fault, because an object may be unloaded at any time.
 * No allocation, no lock, no call of the dynamic loader. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "callsite/state.h"

/* Sorts symbols by address, as spw_callsite_symbols_find needs it, and removes duplicates. Returns
 * how many are left. */
size_t spw_callsite_symbols_sort(struct spw_symbol *symbols, size_t count);

/* Sets the modules and names of sorted symbols. */
void spw_callsite_symbols_name(struct spw_symbol *symbols, size_t count);

/* Returns the entry of an address among sorted symbols; NULL if there is none. */
const struct spw_symbol *spw_callsite_symbols_find(const struct spw_symbol *symbols, size_t count,
                                                   uintptr_t address);

/* Copies the name of a symbol, truncated to `capacity`; "" if it is unknown. */
void spw_callsite_symbol_text(const struct spw_symbol *symbol, char *ret_text, size_t capacity);

/* Recognises functions of PyTorch's autograd by their mangled name. These are apply() of a node
 * (*ret_apply is true, and the name is that of the node, AddmmBackward0) and steps between nodes
 * (InputBuffer::add). Returns false for any other function. */
bool spw_callsite_symbol_node(const char *mangled, bool *ret_apply, char *ret_node,
                              size_t capacity);
