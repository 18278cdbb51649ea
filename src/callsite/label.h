/* A call site in a few words, for people: "train.py:42 forward via functional.py:2905 layer_norm".
 * No locking, no allocation. */
#pragma once

#include <stddef.h>

#include "callsite/text.h"

enum { SPW_CALLSITE_LABEL = 160 }; /* enough for nearly every label */

/* The frame that the user can change: the innermost that is of no installed package, else the
 * outermost. NULL when there is no Python frame. */
const struct spw_python_frame *spw_callsite_own_frame(const struct spw_callsite_facts *site);

/* The native frame that says where an allocation comes from: the innermost with a name, in the
 * library of the innermost. NULL when there is none. */
const struct spw_native_frame *spw_callsite_named_frame(const struct spw_callsite_facts *site);

/* Writes the label, cut at `capacity`: the user's own line, and by way of which line of a library
 * it allocates; else the node of autograd, else a native function; and the thread, if it is not the
 * main one. "?" when nothing is known. */
void spw_callsite_label(const struct spw_callsite_facts *site, char *ret_label, size_t capacity);
