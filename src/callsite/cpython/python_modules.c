#include "callsite/cpython/python_modules.h"

#include "system/safe_read.h"

#include <string.h>

/* Offsets in objects, equal in every version whose layout has `frame_locals`. */
enum {
    CELL_CONTENT = 16,
    TYPE_NAME = 24,
    TYPE_ORDER = 344, /* tuple: the type itself and all that it inherits from */
};

enum { NAME_MOST = 64, TYPES_MOST = 64, PAGE = 4096 };

static bool peek(uintptr_t address, uintptr_t *ret_pointer)
{
    return address != 0 && address % sizeof(uintptr_t) == 0 &&
           spw_safe_read(address, ret_pointer, sizeof(*ret_pointer));
}

/* Reads a text that ends in a zero byte, cut at NAME_MOST; the next page may not be mapped. */
static bool peek_name(uintptr_t address, char ret_name[NAME_MOST])
{
    size_t first = PAGE - address % PAGE;

    first = first < NAME_MOST - 1 ? first : NAME_MOST - 1;
    memset(ret_name, 0, NAME_MOST);
    if (address == 0 || !spw_safe_read(address, ret_name, first)) {
        return false;
    }
    if (memchr(ret_name, '\0', first) == NULL) {
        (void)spw_safe_read(address + first, ret_name + first, NAME_MOST - 1 - first);
    }
    return ret_name[0] != '\0';
}

static bool name_of(uintptr_t type, char ret_name[NAME_MOST])
{
    uintptr_t name;

    return peek(type + TYPE_NAME, &name) && peek_name(name, ret_name);
}

/* ---- is it a module ---- */

static bool is_named_module(uintptr_t type)
{
    char name[NAME_MOST];

    return name_of(type, name) && strcmp(name, "Module") == 0;
}

/* True for a class called Module, and for a class that inherits from one. */
static bool is_module(const struct spw_python *python, uintptr_t type)
{
    uintptr_t order, count, types[TYPES_MOST];

    if (!peek(type + TYPE_ORDER, &order) || !peek(order + SPW_PYTHON_SIZE, &count) || count == 0 ||
        count > TYPES_MOST ||
        !spw_safe_read(order + python->layout->tuple_items, types, count * sizeof(types[0])) ||
        types[0] != type) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        if (is_named_module(types[i])) {
            return true;
        }
    }
    return false;
}

/* ---- frames ---- */

/* True for the functions that a module's call goes through. They all get the module as `self`. */
static bool is_call(const struct spw_python *python, uintptr_t code)
{
    static const char *const names[] = {"forward", "_call_impl", "_wrapped_call_impl"};
    uintptr_t name = *(const uintptr_t *)(code + python->layout->code_name);
    char text[NAME_MOST];
    size_t length;

    if (name == 0 || *(const uintptr_t *)(name + SPW_PYTHON_TYPE) != python->text_type) {
        return false;
    }
    length = spw_callsite_python_text(python->layout, name, text, sizeof(text));
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (length == strlen(names[i]) && memcmp(text, names[i], length) == 0) {
            return true;
        }
    }
    return false;
}

/* Reads the first argument of a frame. */
static bool peek_argument(const struct spw_python_layout *layout, uintptr_t frame,
                          uintptr_t *ret_object)
{
    uintptr_t reference;

    if (!peek(frame + layout->frame_locals, &reference) ||
        (layout->tagged && (reference & SPW_PYTHON_TAGS) == SPW_PYTHON_TAGS)) {
        return false;
    }
    *ret_object = layout->tagged ? reference & ~SPW_PYTHON_TAGS : reference;
    return true;
}

/* Finds the module in the first argument of a frame. The argument is in a cell if inner functions
 * share it. False when there is no module, or when it is `last`. `ret_name` is the name of its
 * class. */
static bool module_of(const struct spw_python *python, uintptr_t frame, uintptr_t last,
                      uintptr_t *ret_module, char ret_name[NAME_MOST])
{
    uintptr_t object, type;

    if (!peek_argument(python->layout, frame, &object) || object == last ||
        !peek(object + SPW_PYTHON_TYPE, &type)) {
        return false;
    }
    if (type == python->cell_type && (!peek(object + CELL_CONTENT, &object) || object == last ||
                                      !peek(object + SPW_PYTHON_TYPE, &type))) {
        return false;
    }
    *ret_module = object;
    return is_module(python, type) && name_of(type, ret_name);
}

/* Puts a class in front of the path, which begins at `at`. Returns the new beginning; `at` when
 * there is no room. */
static size_t put_before(char *path, size_t at, const char *name)
{
    size_t length = strlen(name);
    bool follows = path[at] != '\0';

    if (at < length + follows) {
        return at;
    }
    at -= length + follows;
    memcpy(path + at, name, length);
    if (follows) {
        path[at + length] = '/';
    }
    for (size_t i = at; i < at + length; i++) {
        path[i] = path[i] == '/' ? '_' : path[i];
    }
    return at;
}

size_t spw_callsite_python_modules(const struct spw_python *python,
                                   const struct spw_python_stack *stack, char *ret_path)
{
    size_t at = SPW_PYTHON_MODULES - 1, before = 0;
    uintptr_t last = 0, module;
    char name[NAME_MOST];

    ret_path[at] = '\0';
    for (int i = 0; python->layout->frame_locals != 0 && i < stack->count && at != before; i++) {
        const struct spw_python_step *frame = &stack->frames[i];

        if (frame->code != 0 && is_call(python, frame->code) &&
            module_of(python, frame->frame, last, &module, name)) {
            last = module;
            before = at;
            at = put_before(ret_path, at, name);
        }
    }
    memmove(ret_path, ret_path + at, SPW_PYTHON_MODULES - at);
    return SPW_PYTHON_MODULES - 1 - at;
}
