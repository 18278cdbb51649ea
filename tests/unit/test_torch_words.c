/* The figures in PyTorch's out-of-memory error (torch/words.c). */
#include "torch/words.h"

#include <setjmp.h>
#include <stdbool.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unwind.h>

#define BEGIN "CUDA out of memory. Tried to allocate 9.00 GiB. GPU 0 has ... "
#define REST  " See documentation for Memory Management (https://...)"
#define FIGURES(allocated, private, left)                                                          \
    "Of the allocated memory " allocated                                                           \
    " is allocated by PyTorch, " private "and " left " is reserved by PyTorch but unallocated."
#define PRIVATE "with 6.00 GiB allocated in private pools (e.g., CUDA Graphs), "

/* What the unwinder calls for a function through which errors pass. */
extern const _Unwind_Personality_Fn spw_torch_words_place;

static const char cxx[8] = "GNUCC++";

static bool has_older_strings;

/* A thrown c10::Error: two texts, among other words. */
struct string {
    char *text;
    size_t length;
    size_t capacity;
    void *rest;
};

struct thrown {
    struct _Unwind_Exception head;
    struct {
        void *type;
        struct string message;
        uintptr_t others[3];
        struct string what;
        uintptr_t more[8];
    } error;
};

/* Stands before the text in the older form of std::string. */
struct head {
    size_t length, capacity;
    int others;
};

static struct string older_string_of(const char *text, int others)
{
    size_t length = strlen(text);
    struct head *head = malloc(sizeof(*head) + length + 1);

    *head = (struct head){length, length + 4, others};
    memcpy(head + 1, text, length + 1);
    return (struct string){(char *)(head + 1), 300, 400, (void *)0x1000};
}

static struct string string_of(const char *text)
{
    size_t length = strlen(text);
    char *copy;

    if (has_older_strings) {
        return older_string_of(text, 0);
    }
    copy = malloc(length + 1);
    memcpy(copy, text, length + 1);
    return (struct string){copy, length, length + 4, NULL};
}

static size_t length_of(const struct string *string)
{
    return has_older_strings ? ((struct head *)string->text - 1)->length : string->length;
}

static void end_string(struct string *string)
{
    free(has_older_strings ? string->text - sizeof(struct head) : string->text);
}

static void throw(struct thrown * thrown, const char *message, const char *what)
{
    memset(thrown, 0, sizeof(*thrown));
    thrown->error.type = thrown;
    thrown->error.others[0] = 1;
    thrown->error.others[1] = UINTPTR_MAX;
    thrown->error.message = string_of(message);
    thrown->error.what = string_of(what);
}

static void pass(struct thrown *thrown, _Unwind_Action actions, const char class[8])
{
    _Unwind_Exception_Class number = 0;

    for (int i = 0; i < 8; i++) {
        number = number << 8 | (unsigned char)class[i];
    }
    assert_int_equal(spw_torch_words_place(1, actions, number, &thrown->head, NULL),
                     _URC_CONTINUE_UNWIND);
}

static void check(struct thrown *thrown, const char *message, const char *what)
{
    struct string *strings[] = {&thrown->error.message, &thrown->error.what};
    const char *texts[] = {message, what};

    for (int i = 0; i < 2; i++) {
        assert_string_equal(strings[i]->text, texts[i]);
        assert_int_equal(length_of(strings[i]), strlen(texts[i]));
        assert_true(has_older_strings || strings[i]->capacity >= strings[i]->length);
        end_string(strings[i]);
    }
    assert_ptr_equal(thrown->error.type, thrown);
}

static void say(uint64_t allocated, uint64_t reserved)
{
    static struct spw_torch_library library = {.new_memory = malloc, .delete_memory = free};

    library.has_older_strings = has_older_strings;
    spw_torch_said = (struct spw_torch_said){&library, allocated, reserved};
}

static void test_figures_are_replaced(void **state)
{
    static const struct {
        uint64_t allocated, reserved;
        const char *words[2];
    } rows[] = {
        {UINT64_C(5) << 30, (UINT64_C(5) << 30) + (3 << 19), {"5.00 GiB", "1.50 MiB"}},
        {1 << 20, (1 << 20) + 2048, {"1024.00 KiB", "2.00 KiB"}},
        {512, 512, {"512 bytes", "0 bytes"}},
        {512, 0, {"512 bytes", "0 bytes"}},
    };
    struct thrown thrown;
    char expected[2][512];

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const char *const *words = rows[i].words;

        (void)snprintf(expected[0], sizeof(expected[0]), BEGIN FIGURES("%s", "", "%s") REST,
                       words[0], words[1]);
        (void)snprintf(expected[1], sizeof(expected[1]), BEGIN FIGURES("%s", PRIVATE, "%s") REST,
                       words[0], words[1]);
        say(rows[i].allocated, rows[i].reserved);
        throw(&thrown, BEGIN FIGURES("0 bytes", "", "2.00 MiB") REST,
              BEGIN FIGURES("6.00 GiB", PRIVATE, "2.00 MiB") REST);
        pass(&thrown, _UA_CLEANUP_PHASE, cxx);
        check(&thrown, expected[0], expected[1]);
    }
}

static void test_other_texts_stay(void **state)
{
    static const char *const texts[] = {
        BEGIN REST,
        "CUDA error: out of memory. " FIGURES("1.00 GiB", "", "2.00 MiB"),
        BEGIN "Of the allocated memory 1.00 GiB is allocated by PyTorch.",
        BEGIN "2.00 MiB is reserved by PyTorch but unallocated.",
        "a text",
    };
    struct thrown thrown;

    say(512, 1024);
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        throw(&thrown, texts[i], "");
        pass(&thrown, _UA_CLEANUP_PHASE, cxx);
        check(&thrown, texts[i], "");
    }
}

static void test_other_exceptions_stay(void **state)
{
    static const char text[] = BEGIN FIGURES("1.00 GiB", "", "2.00 MiB");
    struct thrown thrown;

    say(512, 1024);
    throw(&thrown, text, text);
    pass(&thrown, _UA_SEARCH_PHASE, cxx);
    pass(&thrown, _UA_CLEANUP_PHASE, "GNUCOBJ");
    spw_torch_said.library = NULL;
    pass(&thrown, _UA_CLEANUP_PHASE, cxx);
    check(&thrown, text, text);
}

static int older(void **state)
{
    has_older_strings = true;
    return 0;
}

static int newer(void **state)
{
    has_older_strings = false;
    return 0;
}

/* Words that look like a long string, but whose address is none: nothing is read there. */
static void test_no_wrong_address_is_read(void **state)
{
    static const uintptr_t addresses[] = {0, 24, 5000, UINTPTR_MAX, UINT64_C(1) << 62, 20};
    struct thrown thrown;

    say(512, 1024);
    for (size_t i = 0; i < sizeof(addresses) / sizeof(addresses[0]); i++) {
        struct string string = {(char *)addresses[i], 100, 200, NULL};

        throw(&thrown, "", "a text");
        end_string(&thrown.error.message);
        thrown.error.message = string;
        pass(&thrown, _UA_CLEANUP_PHASE, cxx);
        assert_memory_equal(&thrown.error.message, &string, sizeof(string));
        assert_string_equal(thrown.error.what.text, "a text");
        end_string(&thrown.error.what);
    }
}

/* The bytes behind the error belong to another object. */
static void test_other_objects_stay(void **state)
{
    static const char text[] = BEGIN FIGURES("0 bytes", "", "2.00 MiB") REST;
    struct string other = string_of(text);
    struct thrown thrown;

    say(512, 512);
    throw(&thrown, "", "");
    memcpy(&thrown.error.more[3], &other, sizeof(other)); /* reaches beyond 128 bytes */
    pass(&thrown, _UA_CLEANUP_PHASE, cxx);
    assert_memory_equal(&thrown.error.more[3], &other, sizeof(other));
    assert_string_equal(other.text, text);
    end_string(&other);
    check(&thrown, "", "");
}

/* Another string with the same text keeps it, unchanged. */
static void test_a_shared_text_stays(void **state)
{
    static const char text[] = BEGIN FIGURES("0 bytes", "", "2.00 MiB") REST;
    struct thrown thrown;
    struct string other;

    say(512, 512);
    throw(&thrown, "", "");
    end_string(&thrown.error.message);
    other = thrown.error.message = older_string_of(text, 1);
    pass(&thrown, _UA_CLEANUP_PHASE, cxx);
    assert_string_equal(other.text, text);
    assert_int_equal(((struct head *)other.text - 1)->others, 0);
    end_string(&other);
    check(&thrown, BEGIN FIGURES("512 bytes", "", "0 bytes") REST, "");
}

#define IN_BOTH_FORMS(test) cmocka_unit_test_setup(test, newer), cmocka_unit_test_setup(test, older)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_BOTH_FORMS(test_figures_are_replaced),
        IN_BOTH_FORMS(test_other_texts_stay),
        IN_BOTH_FORMS(test_other_exceptions_stay),
        IN_BOTH_FORMS(test_no_wrong_address_is_read),
        IN_BOTH_FORMS(test_other_objects_stay),
        cmocka_unit_test_setup(test_a_shared_text_stays, older),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
