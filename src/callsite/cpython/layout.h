/* The layout of the structs of CPython that a stack walk reads: byte offsets by version, for 64-bit
 * builds with the GIL and without Py_DEBUG. Constant data. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "callsite/cpython/line.h"

/* How a frame stores the position of its current instruction. */
enum spw_python_at {
    SPW_PYTHON_BYTES,   /* an int: offset in bytes */
    SPW_PYTHON_UNITS,   /* an int: offset in units of two bytes */
    SPW_PYTHON_POINTER, /* a pointer into the code object */
};

struct spw_python_layout {
    int minor; /* minor version of CPython 3 */
    /* From the thread state to the innermost frame. Some versions have another struct between the
     * two. */
    uint16_t thread_cframe; /* offset of the pointer to the struct in between; 0: there is none */
    uint16_t thread_frame;  /* offset in the struct in between, or in the thread state if there is
                               none */
    uint16_t thread_native; /* TID of the thread; 0: not stored */
    /* frame */
    uint16_t frame_code;
    uint16_t frame_previous;
    uint16_t frame_at;
    uint16_t frame_owner;  /* a char; 0: none */
    uint16_t frame_locals; /* offset of the first argument, which the other locals follow; 0:
                              unknown */
    uint16_t frame_bytes;  /* number of bytes of a frame that are read */
    enum spw_python_at at;
    bool tagged; /* references in a frame have tags in their lowest bits (SPW_PYTHON_TAGS) */
    /* code object */
    uint16_t code_filename;
    uint16_t code_name;
    uint16_t code_first_line;
    uint16_t code_table;
    uint16_t code_start; /* start of the instructions; only if `at` is a pointer */
    enum spw_callsite_line_form lines;
    uint16_t tuple_items; /* offset of the first element of a tuple */
    /* text object: offset of its characters */
    uint16_t text_ascii;
    uint16_t text_compact;
};

/* Offsets that are the same in every version. */
enum {
    SPW_PYTHON_TYPE = 8,          /* object -> its type */
    SPW_PYTHON_SIZE = 16,         /* text, bytes -> length */
    SPW_PYTHON_TEXT_HASH = 24,    /* text -> hash of its content; -1: not computed yet */
    SPW_PYTHON_TEXT_STATE = 32,   /* text -> how it is stored */
    SPW_PYTHON_BYTES_DATA = 32,   /* bytes -> data */
    SPW_PYTHON_TYPE_FREE = 48,    /* type -> the function that frees an instance (tp_dealloc) */
    SPW_PYTHON_TYPE_BASIC = 32,   /* type -> size of an instance */
    SPW_PYTHON_TYPE_MEMBERS = 240 /* type -> table of members */
};

/* The tags of a reference (CPython's Include/internal/pycore_stackref.h). If both bits are set, the
 * reference is a small number, not an object. */
#define SPW_PYTHON_TAGS ((uintptr_t)3)

/* Frames with this owner or a higher one belong to the interpreter itself, not to a function. */
enum { SPW_PYTHON_OWNER_INTERNAL = 3 };

/* Returns the layout of CPython 3.`minor`; NULL if the version is not supported. */
const struct spw_python_layout *spw_callsite_python_layout_of(int minor);
