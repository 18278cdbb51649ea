/* A call site as plain strings and numbers, and its one-line text form SITE, which `spillway sites`
 * prints and `spillway policy explain --site` reads.
 *
 *     python:train.py:forward:42; native:libtorch_cuda.so:at::native::gelu; size:12MiB
 *
 * Entries KEY:VALUE are separated by semicolons; blanks around them are ignored. Frames are
 * innermost first. `python` is FILE:FUNCTION:LINE, `native` is LIBRARY:SYMBOL; an unknown part is
 * empty. A backslash quotes the next character, \xNN is a byte. No locking, no allocation; strings
 * belong to the caller and are only borrowed. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    SPW_CALLSITE_FRAMES = 128,        /* most frames of each kind that a text may name */
    SPW_CALLSITE_STORAGE = 256 * 1024 /* most bytes of all names in a text */
};

/* One frame of the interpreter. NULL: not known; line 0: not known. */
struct spw_python_frame {
    const char *file; /* as the code object has it, often absolute */
    const char *function;
    uint32_t line;
};

/* One native frame. NULL: not known. */
struct spw_native_frame {
    const char *library; /* a path or a file name */
    const char *symbol;  /* demangled where it was mangled */
};

/* The facts that all allocations of one site share. */
struct spw_callsite_facts {
    const struct spw_python_frame *python; /* innermost first, without spillway's own frames */
    size_t python_count;
    const struct spw_native_frame *native; /* innermost first, without frames of spillway */
    size_t native_count;
    const char *thread;  /* the thread's name (pt_autograd_0); NULL: not known */
    const char *tag;     /* from the program (kv-cache); NULL: none */
    const char *node;    /* the autograd node that runs (AddmmBackward0); NULL: none */
    const char *process; /* file name of the program or of the script it runs; NULL: unknown */
    int64_t rank;        /* in a distributed job; -1: none */
    const char *modules; /* classes of the modules that are called, the outermost first
                          * (GPT/Block/Attention); NULL: none */
};

/* The facts that differ between allocations of one site. */
struct spw_request_facts {
    uint64_t size;        /* bytes; 0: not known */
    int device;           /* ordinal; -1: not known */
    const char *api;      /* the function that was called (cuMemAllocAsync); NULL: not known */
    uint64_t nth;         /* which allocation of its site this is, from 1; 0: not known */
    uint64_t nth_in_step; /* likewise, since the program last marked a step; 0: not known */
};

/* A parsed text. The facts point into this struct, so it must not be copied. */
struct spw_callsite_text {
    struct spw_callsite_facts site;
    struct spw_request_facts request;
    struct spw_python_frame python[SPW_CALLSITE_FRAMES];
    struct spw_native_frame native[SPW_CALLSITE_FRAMES];
    char storage[SPW_CALLSITE_STORAGE];
    size_t used;
};

/* The class of the innermost module, a part of `modules`; NULL: none. */
const char *spw_callsite_module_class(const struct spw_callsite_facts *site);

/* Writes the text of a site, zero-terminated and cut at `capacity`, and returns its whole length,
 * as snprintf does. `request` may be NULL. */
size_t spw_callsite_print(const struct spw_callsite_facts *site,
                          const struct spw_request_facts *request, char *buffer, size_t capacity);

/* Parses a text. Returns false, with one sentence in `complaint` (character, problem, expectation),
 * when it is not the text of a site. */
bool spw_callsite_parse(const char *text, struct spw_callsite_text *ret_site, char *complaint,
                        size_t capacity);
