/* Python stacks, read out of the interpreter's memory. It does not know native frames.
 *
 *   layout           byte offsets in CPython's structs, by version
 *   line             line numbers from the tables of CPython's code objects
 *   python_check     checks once that an interpreter has the expected layout
 *   python_modules   the classes of torch.nn.Module that a Python stack is in
 *   python_walk      the Python stack of the calling thread, read from memory
 *
 * The GIL is not taken, and no function of the interpreter is called. A thread reads only its own
 * frames, and never in a signal handler. While the thread is inside a function of spillway, its
 * frames cannot change, and they hold references to their code objects. Pointers are followed
 * without checks, because python_check.h has verified that this is safe.
 *
 * When the interpreter ends, it does not wait for threads that do not hold the GIL. The state,
 * frames and code of such a thread may be freed while the thread reads them. Before the interpreter
 * frees anything, it marks itself as not initialized (pylifecycle.c: Py_FinalizeEx). A pointer is
 * therefore followed only if Python is still initialized. The memory may still be unmapped between
 * this check and the next access.
 *
 * Locking: none. The caller serialises the functions that intern strings. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "callsite/cpython/layout.h"
#include "callsite/stack_cache.h"
#include "callsite/strings.h"
#include "callsite/table.h"

/* An interpreter: the layout of its structs, and the addresses of some of its types. */
struct spw_python {
    const struct spw_python_layout *layout;
    uintptr_t code_type, text_type, bytes_type;
    uintptr_t cell_type; /* type of variables that functions share; 0: unknown */
    int (*is_initialized)(void);
};

/* Most frames of one stack. They are frames of functions, and frames of the interpreter itself
 * between them. */
enum { SPW_PYTHON_FRAMES = 3 * SPW_CALLSITE_PYTHON };

struct spw_python_step {
    uintptr_t frame;
    uintptr_t code; /* the code object; 0: a frame of the interpreter itself */
    int at;         /* byte offset of the current instruction */
};

struct spw_python_stack {
    int count;
    bool cut; /* the stack has more frames */
    struct spw_python_step frames[SPW_PYTHON_FRAMES];
};

/* Mixes the innermost frames of the thread state `thread` into `hash`. Equal stacks have equal
 * hashes. */
uint64_t spw_callsite_python_key(const struct spw_python *python, uintptr_t thread, uint64_t hash);

/* Walks the stack of `thread`, which must be the calling thread's state. */
void spw_callsite_python_walk(const struct spw_python *python, uintptr_t thread,
                              struct spw_python_stack *ret_stack);

/* Looks up file, function and line of the frames of functions. Returns the number of these frames,
 * at most SPW_CALLSITE_PYTHON. Interns strings. */
int spw_callsite_python_lines(const struct spw_python *python, const struct spw_python_stack *stack,
                              struct spw_strings *strings, struct spw_callsite_line *ret_lines);

/* Adds the words and bytes that identify the stack, and its code objects, to `guard`. Interns
 * strings. */
void spw_callsite_python_guard(const struct spw_python *python, uintptr_t thread,
                               const struct spw_python_stack *stack, struct spw_strings *strings,
                               struct spw_callsite_guard *guard);

/* Returns the address of the characters of the text object at `text`; 0 if the form of the text is
 * unknown. `state` is the text's word SPW_PYTHON_TEXT_STATE. *ret_size is the size of a character
 * in bytes. */
uintptr_t spw_callsite_python_characters(const struct spw_python_layout *layout, uintptr_t text,
                                         unsigned state, unsigned *ret_size);

/* Writes a Python text object as UTF-8, truncated to `capacity`, without a zero byte at the end.
 * U+FFFD replaces zeros and halves of surrogate pairs. Returns the number of bytes written; 0 if
 * the form is unknown. */
size_t spw_callsite_python_text(const struct spw_python_layout *layout, uintptr_t text,
                                char *ret_utf8, size_t capacity);
