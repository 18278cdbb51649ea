/* Finds the line of the forward pass of a node of the backward pass.
 *
 * A recording does not say which call created a node. But if all calls of an operator came from one
 * line of Python, then the operator's nodes are of this line. Such a line is found only for the
 * operators of forward.def. If several lines call an operator, the line is not known. One thread,
 * one recording at a time. */
#pragma once

#include <stddef.h>

#include "callsite/facts.h"

/* Forgets all lines. */
void spw_cli_forward_clear(void);

/* Takes the description of a site, which must have native frames. Call it for each site. */
void spw_cli_forward_take(const struct spw_callsite_facts *facts);

/* Returns the line of a node such as SoftmaxBackward0, or NULL if it is not known. The strings of
 * the frame stay valid as long as those of the description. */
const struct spw_python_frame *spw_cli_forward_line(const char *node);
