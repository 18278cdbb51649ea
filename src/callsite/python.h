/* Python stacks of the calling thread, read where the interpreter keeps them: without the GIL, and
 * without asking the interpreter for more than which thread state is this thread's.
 *
 * Only a thread's own frames are read, never from a signal handler: they stay what they are as long
 * as the thread is in our call, and hold references to their code objects. Before the first walk a
 * whole stack is read with care and compared with what else the process tells (python_check.c);
 * what does not fit switches this off, with one line. Locking: none, but interning (see each). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "callsite/layout.h"
#include "callsite/stack_cache.h"
#include "callsite/strings.h"
#include "callsite/table.h"

/* An interpreter. */
struct spw_python {
    const struct spw_python_layout *layout;
    uintptr_t code_type, text_type, bytes_type; /* their addresses */
};

/* Frames of one stack, before names are looked up: those of functions, and the interpreter's own
 * between them. */
enum { SPW_PYTHON_FRAMES = 3 * SPW_CALLSITE_PYTHON };

struct spw_python_step {
    uintptr_t frame;
    uintptr_t code; /* 0: the interpreter's own */
    int at;         /* byte offset of the instruction */
};

struct spw_python_stack {
    int count;
    bool cut;
    struct spw_python_step frames[SPW_PYTHON_FRAMES];
};

/* The thread state of the calling thread, and its interpreter in *ret_python; 0 when there is no
 * Python on this thread, or none that can be read. Looks for an interpreter when `look` is set. */
uintptr_t spw_callsite_python_thread(bool look, const struct spw_python **ret_python);

/* Mixes the innermost frames into a hash: equal stacks have equal ones. */
uint64_t spw_callsite_python_key(const struct spw_python *python, uintptr_t thread, uint64_t hash);

/* Walks the stack of a thread state, which is the caller's own. */
void spw_callsite_python_walk(const struct spw_python *python, uintptr_t thread,
                              struct spw_python_stack *ret_stack);

/* Names the frames of functions. Returns their number, at most SPW_CALLSITE_PYTHON. Interns: the
 * caller serialises. */
int spw_callsite_python_lines(const struct spw_python *python, const struct spw_python_stack *stack,
                              struct spw_strings *strings, struct spw_callsite_line *ret_lines);

/* Adds to a proof what makes the stack what it is. Interns: the caller serialises. */
void spw_callsite_python_prove(const struct spw_python *python, uintptr_t thread,
                               const struct spw_python_stack *stack, struct spw_strings *strings,
                               struct spw_proof *proof);

/* ---- shared by the files that implement this ---- */

/* Compares what a layout says of the calling thread's stack with what else is known; NULL when all
 * fits, else what does not. Reads nothing but by peeking. `frames` is the number of frames of
 * functions that were seen. */
const char *spw_callsite_python_check(const struct spw_python *python, uintptr_t thread,
                                      int *ret_frames);

/* Writes a text object in UTF-8, as much as fits, and returns the length; 0 when it is none that
 * can be read. */
size_t spw_callsite_python_text(const struct spw_python_layout *layout, uintptr_t text,
                                char *ret_utf8, size_t capacity);
