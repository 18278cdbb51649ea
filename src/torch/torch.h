/* PyTorch's native allocator, with the pool inside.
 *
 * PyTorch calls its allocator through a table of virtual functions. Spillway gives the allocator
 * object a copy of this table with some functions replaced. The pool answers plain requests, tensor
 * by tensor. The native allocator still answers special ones: private pools, captures, history,
 * observers, refusals. The object keeps its type, its address and all other functions.
 *
 * No folder below this one knows PyTorch. */
#pragma once

/* Looks for PyTorch's allocator, and puts the functions in place if the mode asks for it: after
 * CUDA was initialised, and when PyTorch allocates and was not found yet. Cheap when it is not
 * loaded or was dealt with. No lock may be held. */
void spw_torch_look(void);
