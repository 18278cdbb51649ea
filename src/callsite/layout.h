/* Where CPython keeps what a stack walk needs: byte offsets by version, for 64-bit builds with the
 * GIL and without Py_DEBUG. Constant data. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "callsite/line.h"

/* How a frame tells the instruction it is at. */
enum spw_python_at {
    SPW_PYTHON_BYTES,   /* an int: bytes into the code */
    SPW_PYTHON_UNITS,   /* an int: units of two bytes */
    SPW_PYTHON_POINTER, /* a pointer into the code object */
};

struct spw_python_layout {
    int minor; /* of version 3 */
    /* thread state -> the innermost frame, over a struct in between where there is one */
    uint16_t thread_cframe; /* 0: none in between */
    uint16_t thread_frame;  /* in the thread state, or in what stands in between */
    uint16_t thread_native; /* the kernel's number of the thread; 0: not known */
    /* frame */
    uint16_t frame_code;
    uint16_t frame_previous;
    uint16_t frame_at;
    uint16_t frame_owner; /* a char; 0: none */
    uint16_t frame_bytes; /* as much of it as is looked at */
    enum spw_python_at at;
    bool tagged; /* bit 0 of the code field is not part of the address */
    /* code object */
    uint16_t code_filename;
    uint16_t code_name;
    uint16_t code_first_line;
    uint16_t code_table;
    uint16_t code_start; /* of the instructions, where `at` is a pointer */
    enum spw_callsite_line_form lines;
    /* text object: where the characters begin */
    uint16_t text_ascii;
    uint16_t text_compact;
};

/* Of every version the same. */
enum {
    SPW_PYTHON_TYPE = 8,          /* object -> its type */
    SPW_PYTHON_SIZE = 16,         /* text, bytes -> length */
    SPW_PYTHON_TEXT_HASH = 24,    /* text -> hash of its content, -1 when not known */
    SPW_PYTHON_TEXT_STATE = 32,   /* text -> how it is stored */
    SPW_PYTHON_BYTES_DATA = 32,   /* bytes -> data */
    SPW_PYTHON_TYPE_BASIC = 32,   /* type -> size of an instance */
    SPW_PYTHON_TYPE_MEMBERS = 240 /* type -> table of members */
};

/* The first owner of frames that are the interpreter's own, not of a function. */
enum { SPW_PYTHON_OWNER_INTERNAL = 3 };

/* The layout of CPython 3.`minor`; NULL when it is not known. */
const struct spw_python_layout *spw_callsite_python_layout_of(int minor);
