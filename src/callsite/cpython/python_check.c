#include "callsite/cpython/python_check.h"

#include "system/safe_read.h"

#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { DEEPEST = 1 << 16, LENGTH_MOST = 1 << 30, TABLE_MOST = 1 << 20, LINES_MOST = 1 << 24 };

static bool peek_pointer(uintptr_t address, uintptr_t *ret_pointer)
{
    return spw_safe_read(address, ret_pointer, sizeof(*ret_pointer));
}

static bool is_instance(uintptr_t object, uintptr_t type)
{
    uintptr_t found;

    return peek_pointer(object + SPW_PYTHON_TYPE, &found) && found == type;
}

/* ---- offsets by the types' own tables ---- */

/* An entry of a type's table of members. */
struct member {
    uintptr_t name;
    int type;
    int padding;
    intptr_t offset;
    int flags;
    int padding_behind;
    uintptr_t help;
};

/* The offset of a member according to the type; -1 when the type lists no such member. */
static intptr_t member_offset(uintptr_t type, const char *name)
{
    enum { MEMBERS_MOST = 64 };
    char text[32];
    struct member member;
    uintptr_t members;

    if (!peek_pointer(type + SPW_PYTHON_TYPE_MEMBERS, &members)) {
        return -1;
    }
    for (int i = 0; i < MEMBERS_MOST; i++) {
        if (!spw_safe_read(members + (size_t)i * sizeof(member), &member, sizeof(member)) ||
            member.name == 0) {
            return -1;
        }
        memset(text, 0, sizeof(text));
        if (spw_safe_read(member.name, text, strlen(name) + 1) && strcmp(text, name) == 0) {
            return member.offset;
        }
    }
    return -1;
}

static const char *check_type(const struct spw_python *python)
{
    const struct spw_python_layout *layout = python->layout;
    const char *table = layout->lines == SPW_LINE_LNOTAB ? "co_lnotab" : "co_linetable";
    uintptr_t basic;

    if (member_offset(python->code_type, "co_filename") != layout->code_filename ||
        member_offset(python->code_type, "co_name") != layout->code_name ||
        member_offset(python->code_type, "co_firstlineno") != layout->code_first_line ||
        member_offset(python->code_type, table) != layout->code_table) {
        return "code objects have another layout";
    }
    if (layout->code_start != 0 &&
        (!peek_pointer(python->code_type + SPW_PYTHON_TYPE_BASIC, &basic) ||
         basic != layout->code_start)) {
        return "code objects have another size";
    }
    return NULL;
}

/* ---- a stack ---- */

/* Names may have any length and characters, but a zero must follow, at the place that the layout
 * gives. */
static bool check_text(const struct spw_python *python, uintptr_t text)
{
    unsigned state, size;
    uint32_t end = 0;
    uint64_t length;

    if (!is_instance(text, python->text_type) ||
        !spw_safe_read(text + SPW_PYTHON_SIZE, &length, sizeof(length)) || length > LENGTH_MOST ||
        !spw_safe_read(text + SPW_PYTHON_TEXT_STATE, &state, sizeof(state))) {
        return false;
    }
    text = spw_callsite_python_characters(python->layout, text, state, &size);
    return text != 0 && spw_safe_read(text + length * size, &end, size) && end == 0;
}

static bool check_line(const struct spw_python *python, uintptr_t code, int at)
{
    uintptr_t table;
    uint64_t length;
    int first;

    return peek_pointer(code + python->layout->code_table, &table) &&
           is_instance(table, python->bytes_type) &&
           spw_safe_read(table + SPW_PYTHON_SIZE, &length, sizeof(length)) &&
           length <= TABLE_MOST &&
           spw_safe_read(code + python->layout->code_first_line, &first, sizeof(first)) &&
           first >= 0 && first < LINES_MOST && at < LINES_MOST;
}

static bool check_code(const struct spw_python *python, uintptr_t code, int at)
{
    uintptr_t filename, name;

    return peek_pointer(code + python->layout->code_filename, &filename) &&
           peek_pointer(code + python->layout->code_name, &name) && check_text(python, filename) &&
           check_text(python, name) && check_line(python, code, at);
}

/* Checks a copy of one frame and counts it if it belongs to a function. */
static const char *check_frame(const struct spw_python *python, const unsigned char *copy,
                               int *frames)
{
    const struct spw_python_layout *layout = python->layout;
    uintptr_t code, at;

    memcpy(&code, copy + layout->frame_code, sizeof(code));
    memcpy(&at, copy + layout->frame_at, sizeof(at));
    code &= layout->tagged ? ~(uintptr_t)1 : ~(uintptr_t)0;
    if (layout->frame_owner != 0 && copy[layout->frame_owner] >= SPW_PYTHON_OWNER_INTERNAL) {
        return copy[layout->frame_owner] > SPW_PYTHON_OWNER_INTERNAL + 1 ? "unknown frames" : NULL;
    }
    if (code == 0 || !is_instance(code, python->code_type)) {
        return "frames have another layout";
    }
    if (layout->at == SPW_PYTHON_POINTER) {
        intptr_t distance = (intptr_t)(at - code - layout->code_start);

        if (distance < -16 || distance > LINES_MOST) {
            return "instructions are in another place";
        }
        at = distance < 0 ? 0 : (uintptr_t)distance;
    } else {
        at = 0;
    }
    if (!check_code(python, code, (int)at)) {
        return "code objects are not as expected";
    }
    ++*frames;
    return NULL;
}

static const char *check_thread(const struct spw_python *python, uintptr_t thread,
                                uintptr_t *ret_frame)
{
    const struct spw_python_layout *layout = python->layout;
    uintptr_t holder = thread;
    uint64_t native;

    if (layout->thread_native != 0 &&
        (!spw_safe_read(thread + layout->thread_native, &native, sizeof(native)) ||
         native != (uint64_t)syscall(SYS_gettid))) {
        return "thread states have another layout";
    }
    if (layout->thread_cframe != 0 && !peek_pointer(thread + layout->thread_cframe, &holder)) {
        return "thread states have another layout";
    }
    if (holder == 0 || !peek_pointer(holder + layout->thread_frame, ret_frame)) {
        return "thread states have another layout";
    }
    return NULL;
}

const char *spw_callsite_python_check(const struct spw_python *python, uintptr_t thread,
                                      int *ret_frames)
{
    unsigned char copy[128];
    const char *wrong = check_type(python);
    uintptr_t frame = 0;

    *ret_frames = 0;
    if (wrong == NULL) {
        wrong = check_thread(python, thread, &frame);
    }
    for (int i = 0; wrong == NULL && frame != 0; i++) {
        if (i == DEEPEST || !spw_safe_read(frame, copy, python->layout->frame_bytes)) {
            return "frames have another layout";
        }
        wrong = check_frame(python, copy, ret_frames);
        memcpy(&frame, copy + python->layout->frame_previous, sizeof(frame));
    }
    return wrong;
}
