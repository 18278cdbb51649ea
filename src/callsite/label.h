/* Short names of call sites for people: "train.py:42 forward via functional.py:2905 layer_norm".
 * No locking, no allocation. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "callsite/text.h"

enum { SPW_CALLSITE_LABEL = 160 }; /* long enough for nearly every label */

/* Returns the user's own frame: the innermost one outside of installed packages. If all frames are
 * in installed packages, returns the outermost one. NULL if there is no Python frame. */
const struct spw_python_frame *spw_callsite_own_frame(const struct spw_callsite_facts *site);

/* Returns the native frame to name: the innermost one with a symbol, provided that it is in the
 * same library as the innermost frame. Otherwise returns NULL. */
const struct spw_native_frame *spw_callsite_named_frame(const struct spw_callsite_facts *site);

/* Writes the outermost operator of PyTorch in the native frames (aten::addmm), truncated to
 * `capacity`. This is the operator that Python or the autograd engine called. The name of an
 * overload is appended, as in the names of its functions: aten::add_Tensor. If there is no
 * operator, writes "" and returns false. */
bool spw_callsite_operator(const struct spw_callsite_facts *site, char *ret_operator,
                           size_t capacity);

/* Writes the label, truncated to `capacity`. Its parts, if known, are the user's own line, the line
 * of a model's file in a library, the innermost line, the autograd node (or the operator, if there
 * is no node), the class of the module, the thread (unless it is the main thread), and the tag. If
 * there are no Python frames, no node and no operator, the label names a native function. If
 * nothing is known, it is "?". */
void spw_callsite_label(const struct spw_callsite_facts *site, char *ret_label, size_t capacity);

/* Writes the difference between two sites that have the same label, truncated to `capacity`. This
 * is the innermost Python frame that differs; otherwise the innermost native function that differs;
 * otherwise the thread. If none of these differs, writes "" and returns false. */
bool spw_callsite_label_apart(const struct spw_callsite_facts *site,
                              const struct spw_callsite_facts *other, char *ret_text,
                              size_t capacity);
