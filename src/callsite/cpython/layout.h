/* Layout of the structs of CPython that a stack walk reads: byte offsets by version, for 64-bit
 * builds with the GIL and without Py_DEBUG. Constant data. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "callsite/cpython/line.h"

/* How a frame stores its current instruction. */
enum spw_python_at {
    SPW_PYTHON_BYTES,   /* an int: bytes into the code */
    SPW_PYTHON_UNITS,   /* an int: units of two bytes */
    SPW_PYTHON_POINTER, /* a pointer into the code object */
};

struct spw_python_layout {
    int minor; /* of version 3 */
    /* from the thread state to the innermost frame; some versions have a struct in between */
    uint16_t thread_cframe; /* 0: none in between */
    uint16_t thread_frame;  /* in the struct in between, if any, or in the thread state */
    uint16_t thread_native; /* the thread's TID; 0: not stored */
    /* frame */
    uint16_t frame_code;
    uint16_t frame_previous;
    uint16_t frame_at;
    uint16_t frame_owner;  /* a char; 0: none */
    uint16_t frame_locals; /* the first argument, then the other locals; 0: not known */
    uint16_t frame_bytes;  /* size of the part that is read */
    enum spw_python_at at;
    bool tagged; /* a reference in a frame has tags in its lowest bits (SPW_PYTHON_TAGS) */
    /* code object */
    uint16_t code_filename;
    uint16_t code_name;
    uint16_t code_first_line;
    uint16_t code_table;
    uint16_t code_start; /* start of the instructions, if `at` is a pointer */
    enum spw_callsite_line_form lines;
    uint16_t tuple_items; /* where the elements of a tuple begin */
    /* text object: where the characters begin */
    uint16_t text_ascii;
    uint16_t text_compact;
};

/* Offsets that are equal in every version. */
enum {
    SPW_PYTHON_TYPE = 8,          /* object -> its type */
    SPW_PYTHON_SIZE = 16,         /* text, bytes -> length */
    SPW_PYTHON_TEXT_HASH = 24,    /* text -> hash of its content; -1: not computed yet */
    SPW_PYTHON_TEXT_STATE = 32,   /* text -> how it is stored */
    SPW_PYTHON_BYTES_DATA = 32,   /* bytes -> data */
    SPW_PYTHON_TYPE_BASIC = 32,   /* type -> size of an instance */
    SPW_PYTHON_TYPE_MEMBERS = 240 /* type -> table of members */
};

/* The tags of a reference (CPython's Include/internal/pycore_stackref.h). With both bits set it is
 * a small number, not an object. */
#define SPW_PYTHON_TAGS ((uintptr_t)3)

/* Frames with this owner or a higher one are the interpreter's own, not those of a function. */
enum { SPW_PYTHON_OWNER_INTERNAL = 3 };

/* The layout of CPython 3.`minor`; NULL for a version that is not supported. */
const struct spw_python_layout *spw_callsite_python_layout_of(int minor);
