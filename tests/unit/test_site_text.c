#include "callsite/text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct spw_callsite_text site;
static char complaint[512];

static const char *reprint(const char *text)
{
    static char buffer[4096];

    assert_true(spw_callsite_parse(text, &site, complaint, sizeof(complaint)));
    spw_callsite_print(&site.site, &site.request, buffer, sizeof(buffer));
    return buffer;
}

static void expect_complaint(const char *text, const char *expected)
{
    assert_false(spw_callsite_parse(text, &site, complaint, sizeof(complaint)));
    assert_string_equal(complaint, expected);
}

static void test_facts(void **state)
{
    assert_true(spw_callsite_parse(
        "python:/a b/train.py:Net.forward:42;python:x.py:main:7;"
        "native:libtorch_cuda.so:at::native::gelu(int); thread: pt_autograd_0"
        " ;node:AddmmBackward0;module:GPT/Block;process:train.py;rank:3;size:12MiB;device:1;"
        "api:cuMemAllocAsync;nth:5;nth_in_step:6;tag:kv-cache",
        &site, complaint, sizeof(complaint)));
    assert_int_equal(site.site.python_count, 2);
    assert_string_equal(site.site.python[0].file, "/a b/train.py");
    assert_string_equal(site.site.python[0].function, "Net.forward");
    assert_int_equal(site.site.python[0].line, 42);
    assert_string_equal(site.site.python[1].function, "main");
    assert_int_equal(site.site.native_count, 1);
    assert_string_equal(site.site.native[0].library, "libtorch_cuda.so");
    assert_string_equal(site.site.native[0].symbol, "at::native::gelu(int)");
    assert_string_equal(site.site.thread, "pt_autograd_0");
    assert_string_equal(site.site.tag, "kv-cache");
    assert_string_equal(site.site.node, "AddmmBackward0");
    assert_string_equal(site.site.modules, "GPT/Block");
    assert_string_equal(spw_callsite_module_class(&site.site), "Block");
    assert_string_equal(site.site.process, "train.py");
    assert_int_equal(site.site.rank, 3);
    assert_int_equal(site.request.size, 12 << 20);
    assert_int_equal(site.request.device, 1);
    assert_string_equal(site.request.api, "cuMemAllocAsync");
    assert_int_equal(site.request.nth, 5);
    assert_int_equal(site.request.nth_in_step, 6);
}

static void test_what_is_not_said_is_not_known(void **state)
{
    assert_true(
        spw_callsite_parse(" python::f: ; native:: ;", &site, complaint, sizeof(complaint)));
    assert_null(site.site.python[0].file);
    assert_string_equal(site.site.python[0].function, "f");
    assert_int_equal(site.site.python[0].line, 0);
    assert_null(site.site.native[0].library);
    assert_null(site.site.native[0].symbol);
    assert_null(site.site.thread);
    assert_null(site.site.tag);
    assert_null(site.site.node);
    assert_null(site.site.modules);
    assert_null(spw_callsite_module_class(&site.site));
    assert_null(site.site.process);
    assert_int_equal(site.site.rank, -1);
    assert_int_equal(site.request.size, 0);
    assert_int_equal(site.request.device, -1);
    assert_null(site.request.api);
    assert_int_equal(site.request.nth, 0);
    assert_int_equal(site.request.nth_in_step, 0);
    assert_string_equal(reprint(""), "");
}

/* The texts as they are printed: reading and printing gives them back. */
static void test_prints_what_it_reads(void **state)
{
    static const char *const texts[] = {
        "python:train.py:forward:42; native:libtorch.so:at::native::gelu; thread:t; size:12MiB",
        "python:::; native::",
        "python:a\\:b.py:f\\;g:1; native:l\\:ib:operator;",
        "native:lib:a::b(c\\\\d)",
        "thread:\\x20x\\x0ay\\x20",
        "size:12582913; device:0; api:cudaMalloc; nth:9223372036854775807; nth_in_step:4294967295",
        "size:3GiB; rank:0",
        "tag:kv\\;cache; node:n; module:GPT/Block; process:p",
        "python:n\xc3\xa4me.py:\xe6\x96\x87:9",
        "thread:\\x9b\\xc2\\x9b\\x7f",
    };

    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
        char once[4096];

        strcpy(once, reprint(texts[i]));
        assert_string_equal(reprint(once), once);
    }
    assert_string_equal(reprint(texts[0]), texts[0]);
    assert_string_equal(reprint(texts[4]), texts[4]);
    assert_string_equal(reprint(texts[5]), texts[5]);
    assert_string_equal(reprint(texts[7]), texts[7]);
    assert_string_equal(reprint(texts[9]), texts[9]);
    assert_string_equal(reprint("size:1536"), "size:1536");
    assert_string_equal(reprint("size:1.5KiB"), "size:1536");
    assert_string_equal(reprint("device:1;thread:x"), "thread:x; device:1");
}

static void test_complaints(void **state)
{
    expect_complaint("thread", "character 1: \"thread\" is not a key of a site, expected KEY:VALUE "
                               "with one of python, native, thread, node, module, process, "
                               "rank, size, device, api, nth, nth_in_step (did you mean thread?)");
    expect_complaint("size:1KiB; \xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4:1",
                     "character 12: \"\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\" is not a key of a "
                     "site, expected KEY:VALUE with one of python, native, thread, node, module, "
                     "process, rank, size, device, api, nth, nth_in_step");
    expect_complaint("python:a.py", "character 12: expected python:FILE:FUNCTION:LINE");
    expect_complaint("python:a.py:f", "character 14: expected python:FILE:FUNCTION:LINE");
    expect_complaint("python:a.py:f:x", "character 15: not a number, expected 0, 1, 2, ...");
    expect_complaint("python:a.py:f:4000000000", "character 15: the number is too large");
    expect_complaint("native:lib", "character 11: expected native:LIBRARY:SYMBOL");
    expect_complaint("size:12XB", "character 6: not a size, expected 12MiB or a number of bytes");
    expect_complaint("size:50%", "character 6: not a size, expected 12MiB or a number of bytes");
    expect_complaint("device:-1", "character 8: not a number, expected 0, 1, 2, ...");
    expect_complaint("rank:", "character 6: not a number, expected 0, 1, 2, ...");
    expect_complaint("thread:a\\", "character 9: a backslash at the end, expected a character "
                                   "or xNN after it");
}

static void test_limits(void **state)
{
    size_t length = SPW_CALLSITE_STORAGE + 100;
    char *text = malloc(length + 16);

    assert_non_null(text);
    memset(text, 'x', length);
    memcpy(text, "thread:", 7);
    text[length] = '\0';
    expect_complaint(text, "character 8: the text is too long, expected at most 256 KiB");
    text[0] = '\0';
    for (int i = 0; i <= SPW_CALLSITE_FRAMES; i++) {
        strcat(text, "native:a:b;");
    }
    expect_complaint(text, "character 1416: too many native frames, expected at most 128");
    free(text);
}

static void test_cut_at_the_capacity(void **state)
{
    struct spw_python_frame frame = {.file = "train.py", .function = "forward", .line = 42};
    struct spw_callsite_facts facts = {.python = &frame, .python_count = 1, .rank = -1};
    const char *whole = "python:train.py:forward:42";
    char buffer[64];

    for (size_t capacity = 0; capacity < sizeof(buffer); capacity++) {
        memset(buffer, '?', sizeof(buffer));
        assert_int_equal(spw_callsite_print(&facts, NULL, buffer, capacity), strlen(whole));
        if (capacity > 0) {
            size_t kept = capacity - 1 < strlen(whole) ? capacity - 1 : strlen(whole);

            assert_memory_equal(buffer, whole, kept);
            assert_int_equal(buffer[kept], '\0');
        }
        assert_int_equal(buffer[capacity < 63 ? capacity : 63], capacity < 63 ? '?' : buffer[63]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_facts),
        cmocka_unit_test(test_what_is_not_said_is_not_known),
        cmocka_unit_test(test_prints_what_it_reads),
        cmocka_unit_test(test_complaints),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_cut_at_the_capacity),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
