/* PyTorch's native allocator, with the pool inside.
 *
 * PyTorch calls its allocator through a table of virtual functions. Here the allocator object gets
 * another table: a copy of its own in which some functions are ours. Plain requests are answered by
 * the pool, tensor by tensor; all that is special stays the native allocator's: private pools,
 * captures, history, observers, refusals. Since the object itself stays, so do its type, its
 * address and all functions that are not ours.
 *
 * No folder below this one knows PyTorch. */
#pragma once

/* Looks for PyTorch's allocator, and puts the functions in place if the mode asks for it: after
 * CUDA was initialised, and when PyTorch allocates and was not found yet. Cheap when it is not
 * loaded or was dealt with. No lock may be held. */
void spw_torch_look(void);
