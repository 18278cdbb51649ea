#include "callsite/cpython/python_walk.h"

#include "common/hash.h"
#include "common/utf8.h"

#include <stdatomic.h>

enum {
    KEY_FRAMES = 6,
    TEXT_MOST = 1024,
    TABLE_MOST = 1 << 20,
};

static uintptr_t pointer_at(uintptr_t address)
{
    return *(const uintptr_t *)address;
}

static int int_at(uintptr_t address)
{
    return *(const int *)address;
}

static uint64_t word_at(uintptr_t address)
{
    return *(const uint64_t *)address;
}

/* The pointer at `address`; 0 when the interpreter is ending, since no pointer may be followed
 * then. */
static uintptr_t follow(const struct spw_python *python, uintptr_t address)
{
    uintptr_t pointer = pointer_at(address);

    atomic_thread_fence(memory_order_acquire);
    return python->is_initialized() ? pointer : 0;
}

/* ---- the walk ---- */

/* The address of the pointer to the innermost frame. */
static uintptr_t top_of(const struct spw_python *python, uintptr_t thread)
{
    const struct spw_python_layout *layout = python->layout;
    uintptr_t holder =
        layout->thread_cframe != 0 ? follow(python, thread + layout->thread_cframe) : thread;

    return holder == 0 ? 0 : holder + layout->thread_frame;
}

static uintptr_t first_frame(const struct spw_python *python, uintptr_t thread)
{
    uintptr_t top = top_of(python, thread);

    return top == 0 ? 0 : follow(python, top);
}

/* The code object of a frame. 0 for the interpreter's own frames, and for a frame that has not run
 * its first instruction. */
static uintptr_t code_of(const struct spw_python *python, uintptr_t frame, int *ret_at)
{
    const struct spw_python_layout *layout = python->layout;
    uintptr_t code = follow(python, frame + layout->frame_code);

    if (layout->tagged) {
        code &= ~SPW_PYTHON_TAGS;
    }
    if (layout->frame_owner != 0 &&
        *(const char *)(frame + layout->frame_owner) >= SPW_PYTHON_OWNER_INTERNAL) {
        return 0;
    }
    if (code == 0 || pointer_at(code + SPW_PYTHON_TYPE) != python->code_type) {
        return 0;
    }
    if (layout->at == SPW_PYTHON_POINTER) {
        intptr_t distance =
            (intptr_t)(pointer_at(frame + layout->frame_at) - code - layout->code_start);

        *ret_at = distance > INT32_MAX || distance < 0 ? -1 : (int)distance;
    } else {
        *ret_at = int_at(frame + layout->frame_at) * (layout->at == SPW_PYTHON_UNITS ? 2 : 1);
    }
    return *ret_at < 0 ? 0 : code;
}

void spw_callsite_python_walk(const struct spw_python *python, uintptr_t thread,
                              struct spw_python_stack *ret_stack)
{
    uintptr_t frame = first_frame(python, thread);
    int named = 0;

    ret_stack->count = 0;
    while (frame != 0 && named < SPW_CALLSITE_PYTHON && ret_stack->count < SPW_PYTHON_FRAMES) {
        struct spw_python_step *next = &ret_stack->frames[ret_stack->count++];

        next->frame = frame;
        next->code = code_of(python, frame, &next->at);
        named += next->code != 0;
        frame = follow(python, frame + python->layout->frame_previous);
    }
    ret_stack->cut = frame != 0;
}

uint64_t spw_callsite_python_key(const struct spw_python *python, uintptr_t thread, uint64_t hash)
{
    const struct spw_python_layout *layout = python->layout;
    uintptr_t frame = first_frame(python, thread);

    /* The guard reads words in the thread state, so the stack of a thread that has ended must not
     * be found. */
    hash = spw_hash_mix(hash, thread);
    for (int i = 0; i < KEY_FRAMES && frame != 0; i++) {
        hash = spw_hash_mix(hash, frame + word_at(frame + layout->frame_at));
        frame = follow(python, frame + layout->frame_previous);
    }
    return hash;
}

/* ---- names ---- */

uintptr_t spw_callsite_python_characters(const struct spw_python_layout *layout, uintptr_t text,
                                         unsigned state, unsigned *ret_size)
{
    unsigned kind = state >> 2 & 7;
    bool compact = (state >> 5 & 1) != 0;
    bool ascii = (state >> 6 & 1) != 0;

    if (!compact || (kind != 1 && kind != 2 && kind != 4)) {
        return 0;
    }
    *ret_size = kind;
    return text + (ascii ? layout->text_ascii : layout->text_compact);
}

/* The characters of a text object, and their number and size; NULL when it cannot be read. */
static const void *characters(const struct spw_python_layout *layout, uintptr_t text,
                              size_t *ret_count, unsigned *ret_size)
{
    unsigned state = *(const unsigned *)(text + SPW_PYTHON_TEXT_STATE);

    *ret_count = (size_t)word_at(text + SPW_PYTHON_SIZE);
    return (const void *)spw_callsite_python_characters(layout, text, state, ret_size);
}

static uint32_t character(const void *data, unsigned size, size_t index)
{
    switch (size) {
    case 1:
        return ((const uint8_t *)data)[index];
    case 2:
        return ((const uint16_t *)data)[index];
    default:
        return ((const uint32_t *)data)[index];
    }
}

size_t spw_callsite_python_text(const struct spw_python_layout *layout, uintptr_t text,
                                char *ret_utf8, size_t capacity)
{
    size_t count = 0, used = 0;
    unsigned size = 0;
    const void *data = characters(layout, text, &count, &size);

    for (size_t i = 0; data != NULL && i < count && used + SPW_UTF8_LONGEST <= capacity; i++) {
        used += spw_utf8_encode(character(data, size, i), ret_utf8 + used);
    }
    return used;
}

static uint32_t intern_text(const struct spw_python *python, uintptr_t text,
                            struct spw_strings *strings)
{
    char utf8[TEXT_MOST];

    if (text == 0 || pointer_at(text + SPW_PYTHON_TYPE) != python->text_type) {
        return 0;
    }
    return spw_callsite_strings_intern(
        strings, utf8, spw_callsite_python_text(python->layout, text, utf8, sizeof(utf8)));
}

static uint32_t line_of(const struct spw_python *python, uintptr_t code, int at, size_t *ret_used)
{
    const struct spw_python_layout *layout = python->layout;
    uintptr_t table = follow(python, code + layout->code_table);
    size_t length;

    *ret_used = 0;
    if (table == 0 || pointer_at(table + SPW_PYTHON_TYPE) != python->bytes_type) {
        return 0;
    }
    length = (size_t)word_at(table + SPW_PYTHON_SIZE);
    if (length > TABLE_MOST) {
        return 0;
    }
    return spw_callsite_line_find(layout->lines, (const uint8_t *)(table + SPW_PYTHON_BYTES_DATA),
                                  length, int_at(code + layout->code_first_line), at, ret_used);
}

int spw_callsite_python_lines(const struct spw_python *python, const struct spw_python_stack *stack,
                              struct spw_strings *strings, struct spw_callsite_line *ret_lines)
{
    const struct spw_python_layout *layout = python->layout;
    uintptr_t last_name = 0;
    uint32_t last_file = 0;
    int count = 0;

    for (int i = 0; i < stack->count; i++) {
        const struct spw_python_step *frame = &stack->frames[i];
        struct spw_callsite_line *line = &ret_lines[count];
        uintptr_t filename;
        size_t used;

        if (frame->code == 0) {
            continue;
        }
        filename = follow(python, frame->code + layout->code_filename);
        if (filename != last_name) {
            last_name = filename;
            last_file = intern_text(python, filename, strings);
        }
        line->file = last_file;
        line->function =
            intern_text(python, follow(python, frame->code + layout->code_name), strings);
        line->line = line_of(python, frame->code, frame->at, &used);
        count++;
    }
    return count;
}

/* ---- guarding ---- */

/* Python hashes the content of a text, so equal hashes mean equal texts. A text that has not been
 * hashed yet is compared byte by byte. */
static void guard_text(const struct spw_python *python, uintptr_t text, struct spw_strings *strings,
                       struct spw_callsite_guard *guard)
{
    const uint64_t not_known = UINT64_MAX;
    uint64_t hash = word_at(text + SPW_PYTHON_TEXT_HASH);
    const void *data;
    size_t count = 0;
    unsigned size = 0;
    uint32_t copy;

    if (hash != not_known) {
        spw_callsite_guard_add_code(guard, text + SPW_PYTHON_TEXT_HASH, hash);
        return;
    }
    spw_callsite_guard_add_code(guard, text + SPW_PYTHON_SIZE, word_at(text + SPW_PYTHON_SIZE));
    data = characters(python->layout, text, &count, &size);
    copy = data == NULL || count > TEXT_MOST
               ? 0
               : spw_callsite_strings_intern(strings, data, count * size);
    spw_callsite_guard_add_text(
        guard, data, copy == 0 ? NULL : spw_callsite_strings_text(strings, copy), count * size);
}

/* Guards the part of the line table that the line depends on. */
static void guard_table(const struct spw_python *python, const struct spw_python_step *frame,
                        struct spw_strings *strings, struct spw_callsite_guard *guard)
{
    uintptr_t table = follow(python, frame->code + python->layout->code_table);
    uintptr_t data = table + SPW_PYTHON_BYTES_DATA;
    uint32_t copy;
    size_t used;

    (void)line_of(python, frame->code, frame->at, &used);
    if (table == 0 || used == 0) {
        return; /* no line was found */
    }
    spw_callsite_guard_add_code(guard, table + SPW_PYTHON_SIZE, word_at(table + SPW_PYTHON_SIZE));
    copy = spw_callsite_strings_intern(strings, (const void *)data, used);
    spw_callsite_guard_add_text(guard, (const void *)data,
                                copy == 0 ? NULL : spw_callsite_strings_text(strings, copy), used);
}

/* A code object can be freed, and another one allocated at its address, so its content is
 * guarded. */
static void guard_code(const struct spw_python *python, const struct spw_python_step *frame,
                       uintptr_t known_filename, struct spw_strings *strings,
                       struct spw_callsite_guard *guard)
{
    const struct spw_python_layout *layout = python->layout;
    uintptr_t first_line = (frame->code + layout->code_first_line) & ~(uintptr_t)7;
    uintptr_t filename = follow(python, frame->code + layout->code_filename);
    uintptr_t name = follow(python, frame->code + layout->code_name);

    if (filename == 0 || name == 0) {
        guard->broken = true;
        return;
    }
    spw_callsite_guard_add_code(guard, first_line, word_at(first_line));
    spw_callsite_guard_add_code(guard, frame->code + layout->code_filename, filename);
    spw_callsite_guard_add_code(guard, frame->code + layout->code_name, name);
    spw_callsite_guard_add_code(guard, frame->code + layout->code_table,
                                pointer_at(frame->code + layout->code_table));
    if (filename != known_filename) {
        guard_text(python, filename, strings, guard);
    }
    guard_text(python, name, strings, guard);
    guard_table(python, frame, strings, guard);
}

/* Returns true when an inner frame is at the same instruction, which thus is guarded already. */
static bool is_repeated(const struct spw_python_stack *stack, int index)
{
    for (int i = 0; i < index; i++) {
        if (stack->frames[i].code == stack->frames[index].code &&
            stack->frames[i].at == stack->frames[index].at) {
            return true;
        }
    }
    return false;
}

void spw_callsite_python_guard(const struct spw_python *python, uintptr_t thread,
                               const struct spw_python_stack *stack, struct spw_strings *strings,
                               struct spw_callsite_guard *guard)
{
    const struct spw_python_layout *layout = python->layout;
    uintptr_t last_filename = 0;
    uintptr_t link = top_of(python, thread);

    if (layout->thread_cframe != 0) {
        spw_callsite_guard_add(guard, thread + layout->thread_cframe,
                               pointer_at(thread + layout->thread_cframe));
    }
    if (link == 0) {
        return;
    }
    for (int i = 0; i < stack->count; i++) {
        const struct spw_python_step *frame = &stack->frames[i];

        spw_callsite_guard_add(guard, link, frame->frame);
        spw_callsite_guard_add(guard, frame->frame + layout->frame_code,
                               word_at(frame->frame + layout->frame_code));
        spw_callsite_guard_add(guard, frame->frame + layout->frame_at,
                               word_at(frame->frame + layout->frame_at));
        if (frame->code != 0 && !is_repeated(stack, i)) {
            guard_code(python, frame, last_filename, strings, guard);
            last_filename = pointer_at(frame->code + layout->code_filename);
        }
        link = frame->frame + layout->frame_previous;
    }
    if (!stack->cut) {
        spw_callsite_guard_add(guard, link, 0);
    }
}
