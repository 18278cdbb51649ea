/* Short names of call sites for people: "train.py:42 forward via functional.py:2905 layer_norm".
 * No locking, no allocation. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "callsite/text.h"

enum { SPW_CALLSITE_LABEL = 160 }; /* enough for nearly every label */

/* The user's own frame: the innermost one outside of installed packages or, if all are in installed
 * packages, the outermost one. NULL when there is no Python frame. */
const struct spw_python_frame *spw_callsite_own_frame(const struct spw_callsite_facts *site);

/* The native frame to name: the innermost one with a symbol, if it is in the same library as the
 * innermost frame. NULL otherwise. */
const struct spw_native_frame *spw_callsite_named_frame(const struct spw_callsite_facts *site);

/* Writes the outermost operator of PyTorch in the native frames (aten::addmm), cut at `capacity`.
 * It is the one that Python or the autograd engine called. An overload is appended as in the names
 * of its functions: aten::add_Tensor. False, and "", when there is no operator. */
bool spw_callsite_operator(const struct spw_callsite_facts *site, char *ret_operator,
                           size_t capacity);

/* Writes the label, cut at `capacity`. Its parts, if known, are the user's own line, the line of a
 * model's file in a library, the innermost line, the autograd node (without a node, the operator),
 * the class of the module, the thread unless it is the main thread, and the tag. Without Python
 * frames, node and operator, it names a native function. "?" when nothing is known. */
void spw_callsite_label(const struct spw_callsite_facts *site, char *ret_label, size_t capacity);

/* Writes the difference between two sites with the same label, cut at `capacity`. It is the
 * innermost Python frame that differs, otherwise the innermost native function that differs,
 * otherwise the thread. False, and "", when none of these differs. */
bool spw_callsite_label_apart(const struct spw_callsite_facts *site,
                              const struct spw_callsite_facts *other, char *ret_text,
                              size_t capacity);
