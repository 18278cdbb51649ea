/* A call site as plain strings and numbers, and its one-line text form SITE, which `spillway sites`
 * prints and `spillway policy explain --site` reads.
 *
 *     python:train.py:forward:42; native:libtorch_cuda.so:at::native::gelu; size:12MiB
 *
 * Entries KEY:VALUE are separated by semicolons; blanks around them are ignored. Frames are
 * innermost first. The value of `python` is FILE:FUNCTION:LINE, and that of `native` is
 * LIBRARY:SYMBOL. An unknown part is empty. A backslash quotes the next character, and \xNN is a
 * byte. No locking, no allocation. The caller owns all strings. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    SPW_CALLSITE_FRAMES = 128,        /* most frames of each kind in a text */
    SPW_CALLSITE_STORAGE = 256 * 1024 /* most bytes of all names in a text */
};

/* One frame of the interpreter. NULL and line 0 mean unknown. */
struct spw_python_frame {
    const char *file; /* as in the code object; often absolute */
    const char *function;
    uint32_t line;
};

/* One native frame. NULL means unknown. */
struct spw_native_frame {
    const char *library; /* a path or a file name */
    const char *symbol;  /* demangled if it was mangled */
};

/* The facts that all allocations of one site have in common. */
struct spw_callsite_facts {
    const struct spw_python_frame *python; /* innermost first, without spillway's own frames */
    size_t python_count;
    const struct spw_native_frame *native; /* innermost first, without frames of spillway */
    size_t native_count;
    const char *thread;  /* name of the thread (pt_autograd_0); NULL: unknown */
    const char *tag;     /* tag that the program gave (kv-cache); NULL: none */
    const char *node;    /* autograd node that is running (AddmmBackward0); NULL: none */
    const char *process; /* file name of the program, or of the script that it runs; NULL:
                            unknown */
    int64_t rank;        /* rank in a distributed job; -1: none */
    const char *modules; /* classes of the modules whose call is in progress, the outermost first
                            (GPT/Block/Attention); NULL: none */
};

/* The facts that differ between allocations of one site. */
struct spw_request_facts {
    uint64_t size;        /* bytes; 0: unknown */
    int device;           /* ordinal; -1: unknown */
    const char *api;      /* function that the program called (cuMemAllocAsync); NULL: unknown */
    uint64_t nth;         /* number of this allocation at its site, from 1; 0: unknown */
    uint64_t nth_in_step; /* the same since the program last marked a step; 0: unknown */
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

/* Returns the class of the innermost module, as a part of `modules`; NULL if there is none. */
const char *spw_callsite_module_class(const struct spw_callsite_facts *site);

/* Writes the text of a site, zero-terminated and truncated to `capacity`. Like snprintf, returns
 * the length without truncation. `request` may be NULL. */
size_t spw_callsite_print(const struct spw_callsite_facts *site,
                          const struct spw_request_facts *request, char *buffer, size_t capacity);

/* Parses a text. If it is not the text of a site, returns false and writes one sentence to
 * `complaint` (character, problem, expected text). */
bool spw_callsite_parse(const char *text, struct spw_callsite_text *ret_site, char *complaint,
                        size_t capacity);
