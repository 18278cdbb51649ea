/* PyTorch's allocator object, whose functions the pool answers. It does not know how calls arrive.
 *
 *   abi         C++ objects that the allocator takes and returns, as C structs
 *   figures     the allocator's statistics: those of the pool and of its native part
 *   functions   the functions that replace the allocator's own
 *   library     finds PyTorch's allocator in the process, and checks it
 *   place       where the address of the allocator's table of functions is stored
 *   reports     reports of tensors that the simulated GPU has not taken yet
 *   returned    how C++ returns an object in memory
 *   row         the rows of versions.def
 *   share       CUDA IPC of tensors
 *   snapshot    memory snapshots
 *   state       the state of the folder in one object
 *   tensors     the tensors that the pool serves, until no stream uses them
 *   torch       puts the pool into PyTorch's allocator
 *   versions    the layout of the allocator in each version of PyTorch
 *   words       the text of the out-of-memory error
 *
 * PyTorch calls its allocator through a table of virtual functions. Spillway gives the allocator
 * object a copy of this table, and replaces some functions of the copy. The pool serves plain
 * requests, tensor by tensor. The native allocator still serves special ones: private pools,
 * captures, history, observers, refusals. The object keeps its type, its address and all other
 * functions.
 *
 * No folder below this one knows PyTorch. */
#pragma once

/* Looks for PyTorch's allocator, and puts the functions in place if the mode asks for it. Called
 * after CUDA was initialised, and when PyTorch allocates before its allocator was found. Cheap if
 * PyTorch is not loaded, or if its allocator was already handled. No lock may be held. */
void spw_torch_look(void);
