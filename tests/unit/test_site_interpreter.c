/* The reader of Python stacks against an interpreter made by hand, in the layout of each version:
 * every single thing that may change under a stack that is known must be noticed, and whatever does
 * not look right at the start switches the reader off. This program exports the names that an
 * interpreter does. */
#include "callsite/capture.h"
#include "callsite/cpython/layout.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define EXPORT __attribute__((visibility("default")))

enum { OBJECT_BYTES = 512, FRAMES = 12, CODE_BYTES = 16, FIRST_LINE = 100 };

/* ---- what an interpreter exports ---- */

EXPORT uint64_t PyCode_Type[64], PyUnicode_Type[64], PyBytes_Type[64];
EXPORT const char *Py_GetVersion(void);
EXPORT void *PyGILState_GetThisThreadState(void);
EXPORT int Py_IsInitialized(void);
EXPORT int Py_IsFinalizing(void);

static const char *version = "3.11.0 (made by hand)";
static void *thread_state;
static int initialized = 1, finalizing;

const char *Py_GetVersion(void)
{
    return version;
}

void *PyGILState_GetThisThreadState(void)
{
    return thread_state;
}

int Py_IsInitialized(void)
{
    return initialized;
}

int Py_IsFinalizing(void)
{
    return finalizing;
}

/* What frees a code object, and how often it was called. */
static uint64_t freed;

static void free_code(void *code)
{
    freed += code == &freed;
}

static void set_freeing(void (*function)(void *))
{
    PyCode_Type[SPW_PYTHON_TYPE_FREE / 8] = (uintptr_t)function;
}

/* ---- objects ---- */

static const struct spw_python_layout *layout;

/* Kept, so that those who look for leaks see that they are not lost. */
static void *objects[1 << 12];
static size_t object_count;

static void *object(const void *type, size_t more_bytes)
{
    char *made = calloc(1, OBJECT_BYTES + more_bytes);

    assert_non_null(made);
    objects[object_count++ % (sizeof(objects) / sizeof(objects[0]))] = made;
    memcpy(made + SPW_PYTHON_TYPE, &type, sizeof(type));
    return made;
}

static void put(void *at, size_t offset, uint64_t value)
{
    memcpy((char *)at + offset, &value, sizeof(value));
}

static void put_int(void *at, size_t offset, int value)
{
    memcpy((char *)at + offset, &value, sizeof(value));
}

/* A text of one byte a character; without a hash, as one that nobody has looked up yet. */
static void *text(const char *content)
{
    enum { COMPACT_ASCII_1 = 1 << 2 | 1 << 5 | 1 << 6 };
    char *made = object(PyUnicode_Type, strlen(content));

    put(made, SPW_PYTHON_SIZE, strlen(content));
    put(made, SPW_PYTHON_TEXT_HASH, UINT64_MAX);
    put_int(made, SPW_PYTHON_TEXT_STATE, COMPACT_ASCII_1);
    strcpy(made + layout->text_ascii, content);
    return made;
}

static char *characters(void *made)
{
    return (char *)made + layout->text_ascii;
}

/* A table in which all code is `lines` behind the first line. */
static void fill_table(void *made, int lines)
{
    char *data = (char *)made + SPW_PYTHON_BYTES_DATA;

    switch (layout->lines) {
    case SPW_LINE_LNOTAB:
        memcpy(data, (char[]){0, (char)lines}, 2);
        put(made, SPW_PYTHON_SIZE, 2);
        break;
    case SPW_LINE_LINETABLE:
        memcpy(data, (char[]){100, (char)lines}, 2);
        put(made, SPW_PYTHON_SIZE, 2);
        break;
    default: /* without columns, eight units of code an entry */
        memcpy(data, (char[]){(char)(0x80 | 13 << 3 | 7), (char)(lines << 1)}, 2);
        put(made, SPW_PYTHON_SIZE, 2);
        break;
    }
}

/* The stack of this test: frames[0] is the innermost. */
static struct {
    void *frame, *code, *name, *file, *table;
} frames[FRAMES];
static void *between; /* what points to the innermost frame, where the layout has it */

static void set_at(int index, int bytes)
{
    if (layout->at == SPW_PYTHON_POINTER) {
        put(frames[index].frame, layout->frame_at,
            (uintptr_t)frames[index].code + layout->code_start + (uintptr_t)bytes);
    } else {
        put_int(frames[index].frame, layout->frame_at,
                layout->at == SPW_PYTHON_UNITS ? bytes / 2 : bytes);
    }
}

static void set_code(int index, void *code)
{
    put(frames[index].frame, layout->frame_code, (uintptr_t)code | (layout->tagged ? 1 : 0));
}

static void link_frames(int inner, int outer)
{
    put(frames[inner].frame, layout->frame_previous,
        outer < 0 ? 0 : (uintptr_t)frames[outer].frame);
}

static void set_top(int index)
{
    void *holder = layout->thread_cframe != 0 ? between : thread_state;

    put(holder, layout->thread_frame, index < 0 ? 0 : (uintptr_t)frames[index].frame);
}

static void make_frame(int index)
{
    char name[32];

    frames[index].frame = object(NULL, 0);
    frames[index].code = object(PyCode_Type, 0);
    snprintf(name, sizeof(name), "function%x", index);
    frames[index].name = text(name);
    snprintf(name, sizeof(name), "/a/file%x.py", index);
    frames[index].file = text(name);
    frames[index].table = object(PyBytes_Type, 0);
    fill_table(frames[index].table, index + 1);
    put(frames[index].code, layout->code_name, (uintptr_t)frames[index].name);
    put(frames[index].code, layout->code_filename, (uintptr_t)frames[index].file);
    put(frames[index].code, layout->code_table, (uintptr_t)frames[index].table);
    put_int(frames[index].code, layout->code_first_line, FIRST_LINE);
    set_code(index, frames[index].code);
    set_at(index, 4);
}

static void make_types(void)
{
    static const char *const names[] = {"co_filename", "co_name", "co_firstlineno", "co_linetable",
                                        "co_lnotab"};
    const uint64_t offsets[] = {layout->code_filename, layout->code_name, layout->code_first_line,
                                layout->code_table, layout->code_table};
    static uint64_t members[6 * 5];

    for (int i = 0; i < 5; i++) {
        members[i * 5] = (uintptr_t)names[i];
        members[i * 5 + 2] = offsets[i];
    }
    PyCode_Type[SPW_PYTHON_TYPE_MEMBERS / 8] = (uintptr_t)members;
    PyCode_Type[SPW_PYTHON_TYPE_BASIC / 8] = layout->code_start;
    set_freeing(free_code);
}

static void make_interpreter(int minor)
{
    static char text_of_version[32];

    snprintf(text_of_version, sizeof(text_of_version), "3.%d.0 (made by hand)", minor);
    version = text_of_version;
    layout = spw_callsite_python_layout_of(minor);
    make_types();
    thread_state = calloc(1, OBJECT_BYTES);
    between = calloc(1, OBJECT_BYTES);
    put_int(thread_state, 0, 0);
    if (layout->thread_native != 0) {
        put(thread_state, layout->thread_native, (uint64_t)syscall(SYS_gettid));
    }
    if (layout->thread_cframe != 0) {
        put(thread_state, layout->thread_cframe, (uintptr_t)between);
    }
    for (int i = 0; i < FRAMES; i++) {
        make_frame(i);
    }
    for (int i = 0; i < FRAMES; i++) {
        link_frames(i, i + 1 < FRAMES ? i + 1 : -1);
    }
    set_top(0);
}

/* In a child, where a failure of cmocka's would go on with the next test. */
#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            (void)fprintf(stderr, "line %d: " #condition "\n", __LINE__);                          \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)

/* ---- capturing ---- */

static bool recognised; /* the last capture needed no walk */

/* From one place, whoever asks. */
static uint32_t capture_here(void)
{
    uint32_t site = 0;

    for (volatile int i = 0; i < 4; i++) {
        unsigned walks = spw_callsite_walks();

        site = spw_callsite_capture("test");
        recognised = spw_callsite_walks() == walks;
    }
    return site;
}

static uint32_t (*volatile capture)(void) = capture_here; /* the compiler makes no second place */

static void check_frame(uint32_t number, int index, int which, uint32_t line)
{
    const struct spw_callsite *site = spw_callsite_table_get(spw_callsite_known(), number);
    const struct spw_callsite_line *found = &spw_callsite_lines(site)[index];
    char name[32];

    snprintf(name, sizeof(name), "function%x", which);
    CHECK(strcmp(spw_callsite_strings_text(spw_callsite_texts(), found->function), name) == 0);
    snprintf(name, sizeof(name), "/a/file%x.py", which);
    CHECK(strcmp(spw_callsite_strings_text(spw_callsite_texts(), found->file), name) == 0);
    CHECK(found->line == line);
}

static int count_of(uint32_t site)
{
    return spw_callsite_table_get(spw_callsite_known(), site)->python_count;
}

/* Runs a test in a child, for a process has one interpreter; returns what it wrote to stderr. */
static void in_child(void (*test)(int), int minor, char *ret_said, size_t capacity)
{
    int ends[2], status = -1;
    size_t used = 0;
    ssize_t length;
    pid_t child;

    assert_int_equal(pipe(ends), 0);
    fflush(NULL);
    child = fork();
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        close(ends[0]);
        close(ends[1]);
        test(minor);
        _exit(0);
    }
    close(ends[1]);
    while ((length = read(ends[0], ret_said + used, capacity - 1 - used)) > 0) {
        used += (size_t)length;
    }
    ret_said[used] = '\0';
    close(ends[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    if (status != 0) {
        print_error("3.%d: %s", minor, ret_said);
    }
    assert_int_equal(status, 0);
}

/* ---- the cases ---- */

static uint32_t base;

/* A code object never changes. Another one may be at its address when one was freed. */
static void free_one(void)
{
    uint64_t before = freed;

    ((void (*)(void *))(uintptr_t)PyCode_Type[SPW_PYTHON_TYPE_FREE / 8])(&freed);
    CHECK(freed == before + 1);
}

/* The stack is another one now, and has not been seen; then it is what it was. */
#define CHANGE(change, undo)                                                                       \
    do {                                                                                           \
        uint32_t changed_site;                                                                     \
        change;                                                                                    \
        changed_site = capture();                                                                  \
        CHECK(changed_site != 0);                                                                  \
        CHECK(changed_site != base && recognised);                                                 \
        undo;                                                                                      \
    } while (0)

#define CHANGE_CODE(change, undo)                                                                  \
    do {                                                                                           \
        CHANGE((change, free_one()), (undo, free_one()));                                          \
        CHECK(capture() == base);                                                                  \
    } while (0)

#define CHANGE_STACK(change, undo)                                                                 \
    do {                                                                                           \
        CHANGE(change, undo);                                                                      \
        CHECK(capture() == base);                                                                  \
    } while (0)

static void every_change_is_noticed(int minor)
{
    void *other;

    make_interpreter(minor);
    spw_callsite_start(SPW_SITES_PYTHON);
    base = capture();
    CHECK(count_of(base) == FRAMES);
    for (int i = 0; i < FRAMES; i++) {
        check_frame(base, i, i, (uint32_t)(FIRST_LINE + i + 1));
    }
    CHECK(recognised);
    for (int i = 0; i < FRAMES; i++) {
        char *name = characters(frames[i].name), *file = characters(frames[i].file);

        CHANGE_CODE(name[8] = '#', name[8] = "0123456789ab"[i]);
        CHANGE_CODE(file[3] = '#', file[3] = 'f');
        CHANGE_CODE(put(frames[i].name, SPW_PYTHON_SIZE, 8),
                    put(frames[i].name, SPW_PYTHON_SIZE, 9));
        CHANGE_CODE(fill_table(frames[i].table, 50), fill_table(frames[i].table, i + 1));
        CHANGE_CODE(put_int(frames[i].code, layout->code_first_line, 200),
                    put_int(frames[i].code, layout->code_first_line, FIRST_LINE));
        other = text("another");
        CHANGE_CODE(put(frames[i].code, layout->code_name, (uintptr_t)other),
                    put(frames[i].code, layout->code_name, (uintptr_t)frames[i].name));
        CHANGE_CODE(put(frames[i].code, layout->code_filename, (uintptr_t)other),
                    put(frames[i].code, layout->code_filename, (uintptr_t)frames[i].file));
        other = frames[i].code;
        CHANGE_STACK((frames[i].code = frames[(i + 1) % FRAMES].code, set_code(i, frames[i].code),
                      set_at(i, 4)),
                     (frames[i].code = other, set_code(i, other), set_at(i, 4)));
    }
    for (int i = 0; i + 2 < FRAMES; i++) {
        CHANGE_STACK(link_frames(i, i + 2), link_frames(i, i + 1)); /* one is left out */
        CHANGE_STACK(link_frames(i, -1), link_frames(i, i + 1));    /* the outer ones are gone */
    }
    CHANGE_STACK(set_top(1), set_top(0));
}

/* The code of a frame says where in it the frame is: another place is another line. */
static void instructions_tell_lines(int minor)
{
    make_interpreter(minor);
    spw_callsite_start(SPW_SITES_PYTHON);
    base = capture();
    if (layout->lines == SPW_LINE_LOCATIONS) {
        put(frames[2].table, SPW_PYTHON_SIZE, 4);
        memcpy((char *)frames[2].table + SPW_PYTHON_BYTES_DATA + 2,
               (char[]){(char)(0x80 | 13 << 3 | 7), 14}, 2);
        CHANGE_STACK(set_at(2, 20), set_at(2, 4));
    }
    /* A frame that has not begun yet is left out. */
    CHANGE_STACK(set_at(1, -2), set_at(1, 4));
}

/* A function that calls itself: a frame at another instruction of the same code has a line of its
 * own, whose part of the table must be watched too. The inner frame is at the first line. */
static void recursion_tells_lines(int minor)
{
    char *data;

    make_interpreter(minor);
    if (layout->lines != SPW_LINE_LOCATIONS) {
        return; /* the older tables are short here: both lines depend on all of it */
    }
    frames[5].code = frames[2].code;
    set_code(5, frames[2].code);
    data = (char *)frames[2].table + SPW_PYTHON_BYTES_DATA;
    put(frames[2].table, SPW_PYTHON_SIZE, 4);
    memcpy(data + 2, (char[]){(char)(0x80 | 13 << 3 | 7), 14}, 2);
    set_at(2, 4);
    set_at(5, 20);
    spw_callsite_start(SPW_SITES_PYTHON);
    base = capture();
    check_frame(base, 2, 2, FIRST_LINE + 3);
    check_frame(base, 5, 2, FIRST_LINE + 3 + 7);
    CHANGE_CODE(data[3] = 16, data[3] = 14);
    CHANGE_CODE(data[1] = 8, data[1] = 6);
}

static void hashes_stand_for_texts(int minor)
{
    make_interpreter(minor);
    for (int i = 0; i < FRAMES; i++) {
        put(frames[i].name, SPW_PYTHON_TEXT_HASH, 1000 + (uint64_t)i);
        put(frames[i].file, SPW_PYTHON_TEXT_HASH, 2000 + (uint64_t)i);
    }
    spw_callsite_start(SPW_SITES_PYTHON);
    base = capture();
    for (int i = 0; i < FRAMES; i++) {
        char *name = characters(frames[i].name), *file = characters(frames[i].file);

        CHANGE_CODE((name[8] = '#', put(frames[i].name, SPW_PYTHON_TEXT_HASH, 7)),
                    (name[8] = "0123456789ab"[i],
                     put(frames[i].name, SPW_PYTHON_TEXT_HASH, 1000 + (uint64_t)i)));
        CHANGE_CODE((file[3] = '#', put(frames[i].file, SPW_PYTHON_TEXT_HASH, 7)),
                    (file[3] = 'f', put(frames[i].file, SPW_PYTHON_TEXT_HASH, 2000 + (uint64_t)i)));
    }
}

/* Nothing counts the freed code objects any longer, so all that is in them is compared. */
static void another_library_frees_code(int minor)
{
    make_interpreter(minor);
    spw_callsite_start(SPW_SITES_PYTHON);
    base = capture();
    set_freeing(free_code);
    CHANGE_STACK(characters(frames[1].name)[8] = '#', characters(frames[1].name)[8] = '1');
}

static void own_frames_of_the_interpreter_are_left_out(int minor)
{
    make_interpreter(minor);
    if (layout->frame_owner == 0) {
        return;
    }
    ((char *)frames[2].frame)[layout->frame_owner] = SPW_PYTHON_OWNER_INTERNAL;
    set_code(2, PyBytes_Type);
    spw_callsite_start(SPW_SITES_PYTHON);
    base = capture();
    CHECK(count_of(base) == FRAMES - 1);
    check_frame(base, 2, 3, FIRST_LINE + 4);
}

static void without_a_stack_there_are_no_frames(int minor)
{
    void *state;

    make_interpreter(minor);
    state = thread_state;
    spw_callsite_start(SPW_SITES_PYTHON);
    thread_state = NULL;
    CHECK(count_of(capture()) == 0);
    thread_state = state;
    CHECK(count_of(capture()) == FRAMES);
    set_top(-1);
    CHECK(count_of(capture()) == 0);
    set_top(0);
    finalizing = 1;
    CHECK(count_of(capture()) == 0);
    finalizing = 0;
    initialized = 0;
    CHECK(count_of(capture()) == 0);
}

/* The first stack of a process has one name that is no terminal's, and one that is long. */
static void odd_names_are_names(int minor)
{
    const struct spw_callsite *site;
    const char *file, *function;
    char name[5000] = "";

    make_interpreter(minor);
    memset(name, 'a', sizeof(name) - 1);
    put(frames[0].code, layout->code_filename, (uintptr_t)text(name));
    put(frames[0].code, layout->code_name, (uintptr_t)text("\x1b]0;own\nline\x07"));
    spw_callsite_start(SPW_SITES_BOTH);
    base = capture();
    site = spw_callsite_table_get(spw_callsite_known(), base);
    CHECK(site->python_count == FRAMES);
    function =
        spw_callsite_strings_text(spw_callsite_texts(), spw_callsite_lines(site)[0].function);
    file = spw_callsite_strings_text(spw_callsite_texts(), spw_callsite_lines(site)[0].file);
    CHECK(strcmp(function, "\x1b]0;own\nline\x07") == 0);
    CHECK(strlen(file) > 1000 && strncmp(name, file, strlen(file)) == 0);
    check_frame(base, 1, 1, FIRST_LINE + 2);
}

static void on_every_version(void (*test)(int))
{
    char said[4096];

    for (int minor = 8; minor <= 14; minor++) {
        in_child(test, minor, said, sizeof(said));
        assert_string_equal(said, "");
    }
}

static void test_every_change_is_noticed(void **state)
{
    on_every_version(every_change_is_noticed);
}

static void test_instructions(void **state)
{
    on_every_version(instructions_tell_lines);
}

static void test_recursion(void **state)
{
    on_every_version(recursion_tells_lines);
}

static void test_hashes(void **state)
{
    on_every_version(hashes_stand_for_texts);
}

static void test_another_library_frees_code(void **state)
{
    on_every_version(another_library_frees_code);
}

static void test_own_frames(void **state)
{
    on_every_version(own_frames_of_the_interpreter_are_left_out);
}

static void test_no_stack(void **state)
{
    on_every_version(without_a_stack_there_are_no_frames);
}

static void test_odd_names(void **state)
{
    on_every_version(odd_names_are_names);
}

/* ---- what does not look right ---- */

static int wrong; /* which thing */

enum { WRONG_THINGS = 13 };

static void make_wrong(int minor)
{
    make_interpreter(minor);
    switch (wrong) {
    case 0:
        version = "3.99.0 (from the future)";
        break;
    case 1:
        version = "3.13.0 experimental free-threading build (main)";
        break;
    case 2:
        version = "2.7.18 (old)";
        break;
    case 3:
        PyCode_Type[SPW_PYTHON_TYPE_MEMBERS / 8] += 40; /* one member is missing */
        break;
    case 4:
        PyCode_Type[SPW_PYTHON_TYPE_MEMBERS / 8] = 64; /* nowhere */
        break;
    case 5:
        PyCode_Type[SPW_PYTHON_TYPE_BASIC / 8] = 999;
        break;
    case 6:
        put(thread_state, layout->thread_native, 1);
        break;
    case 7:
        put(thread_state, layout->thread_cframe != 0 ? layout->thread_cframe : layout->thread_frame,
            64);
        break;
    case 8:
        link_frames(3, 3);
        put(frames[3].frame, layout->frame_previous, 4096);
        break;
    case 9:
        set_code(2, frames[2].name);
        break;
    case 10:
        put(frames[1].code, layout->code_filename, 4096);
        break;
    case 11:
        put(frames[1].name, SPW_PYTHON_SIZE, 2); /* its characters do not end there */
        break;
    default:
        put(frames[1].code, layout->code_table, (uintptr_t)frames[1].name);
        break;
    }
}

static void switches_off(int minor)
{
    make_wrong(minor);
    spw_callsite_start(SPW_SITES_BOTH);
    CHECK(count_of(capture()) == 0);
    CHECK(count_of(capture()) == 0);
}

static void test_what_looks_wrong_switches_it_off(void **state)
{
    static const char begin[] = "spillway: call sites: Python ";
    char said[4096];

    for (wrong = 0; wrong < WRONG_THINGS; wrong++) {
        in_child(switches_off, 12, said, sizeof(said));
        if (strncmp(said, begin, strlen(begin)) != 0 || strchr(said, '\n') != strrchr(said, '\n')) {
            print_error("thing %d: \"%s\"\n", wrong, said);
            fail();
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_change_is_noticed),
        cmocka_unit_test(test_instructions),
        cmocka_unit_test(test_recursion),
        cmocka_unit_test(test_hashes),
        cmocka_unit_test(test_another_library_frees_code),
        cmocka_unit_test(test_own_frames),
        cmocka_unit_test(test_no_stack),
        cmocka_unit_test(test_odd_names),
        cmocka_unit_test(test_what_looks_wrong_switches_it_off),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
