#include "callsite/cpython/layout.h"

/* For 3.8 to 3.10, whose frames are objects. */
#define OBJECT_FRAMES(frame_at_, at_, lines_)                                                      \
    .thread_frame = 24, .frame_code = 32, .frame_previous = 24, .frame_at = (frame_at_),           \
    .frame_bytes = 112, .at = (at_), .code_filename = 104, .code_name = 112,                       \
    .code_first_line = 40, .code_table = 120, .lines = (lines_), .tuple_items = 24,                \
    .text_ascii = 48, .text_compact = 72

/* For 3.11 and later, whose frames are structs on a stack of their own. */
#define STRUCT_FRAMES                                                                              \
    .frame_at = 56, .frame_bytes = 80, .at = SPW_PYTHON_POINTER, .code_filename = 112,             \
    .code_name = 120, .code_table = 136, .lines = SPW_LINE_LOCATIONS

static const struct spw_python_layout layouts[] = {
    {.minor = 8, .frame_locals = 360, OBJECT_FRAMES(104, SPW_PYTHON_BYTES, SPW_LINE_LNOTAB)},
    {.minor = 9, .frame_locals = 360, OBJECT_FRAMES(104, SPW_PYTHON_BYTES, SPW_LINE_LNOTAB)},
    {.minor = 10, .frame_locals = 352, OBJECT_FRAMES(96, SPW_PYTHON_UNITS, SPW_LINE_LINETABLE)},
    {.minor = 11,
     .thread_cframe = 56,
     .thread_frame = 8,
     .thread_native = 160,
     .frame_code = 32,
     .frame_previous = 48,
     .frame_owner = 69,
     .frame_locals = 72,
     .code_first_line = 72,
     .code_start = 184,
     .tuple_items = 24,
     .text_ascii = 48,
     .text_compact = 72,
     STRUCT_FRAMES},
    {.minor = 12,
     .thread_cframe = 56,
     .thread_frame = 0,
     .thread_native = 144,
     .frame_code = 0,
     .frame_previous = 8,
     .frame_owner = 70,
     .frame_locals = 72,
     .code_first_line = 68,
     .code_start = 192,
     .tuple_items = 24,
     .text_ascii = 40,
     .text_compact = 56,
     STRUCT_FRAMES},
    {.minor = 13,
     .thread_frame = 72,
     .thread_native = 160,
     .frame_code = 0,
     .frame_previous = 8,
     .frame_owner = 70,
     .frame_locals = 72,
     .code_first_line = 68,
     .code_start = 200,
     .tuple_items = 24,
     .text_ascii = 40,
     .text_compact = 56,
     STRUCT_FRAMES},
    {.minor = 14,
     .thread_frame = 72,
     .tagged = true,
     .frame_code = 0,
     .frame_previous = 8,
     .frame_owner = 74,
     .frame_locals = 80,
     .code_first_line = 68,
     .code_start = 208,
     .tuple_items = 32, /* behind the hash */
     .text_ascii = 40,
     .text_compact = 56,
     STRUCT_FRAMES},
};

const struct spw_python_layout *spw_callsite_python_layout_of(int minor)
{
    for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++) {
        if (layouts[i].minor == minor) {
            return &layouts[i];
        }
    }
    return NULL;
}
