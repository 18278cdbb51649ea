#include "common/options.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define GIB (UINT64_C(1) << 30)

static char complaint[SPW_COMPLAINT_TEXT];

static struct spw_option_value get(enum spw_option option)
{
    return spw_option_get(option, complaint, sizeof(complaint));
}

static struct spw_option_value get_with(enum spw_option option, const char *text)
{
    struct spw_option_value value;

    setenv(spw_option_row(option)->name, text, 1);
    value = get(option);
    unsetenv(spw_option_row(option)->name);
    return value;
}

/* The sentence for a bad value, word by word, and the fallback in its place. */
static struct spw_option_value expect_complaint(enum spw_option option, const char *text,
                                                const char *expected)
{
    struct spw_option_value value = get_with(option, text);

    assert_string_equal(complaint, expected);
    assert_false(value.set);
    return value;
}

/* The default of SPILLWAY_GROWTH is a matter of measurement, not of this test. */
static uint32_t growth_fallback(void)
{
    struct spw_option_value value = {0};

    assert_true(spw_option_parse(SPW_OPT_SPILLWAY_GROWTH,
                                 spw_option_row(SPW_OPT_SPILLWAY_GROWTH)->fallback, &value, NULL,
                                 0));
    assert_int_not_equal(value.permille, 0);
    return value.permille;
}

static void test_counts_have_a_range(void **state)
{
    struct spw_option_value value = expect_complaint(
        SPW_OPT_SPILLWAY_SIM_DEVICES, "65",
        "SPILLWAY_SIM_DEVICES=65: out of range (expected 1 to 64); using the default");

    assert_int_equal(value.bytes, 1);
    expect_complaint(SPW_OPT_SPILLWAY_SIM_HOST_NODES, "0",
                     "SPILLWAY_SIM_HOST_NODES=0: out of range (expected 1 to 16); using the "
                     "default");
    assert_int_equal(get_with(SPW_OPT_SPILLWAY_SIM_DEVICES, "64").bytes, 64);
    assert_int_equal(get_with(SPW_OPT_SPILLWAY_SIM_SEED, "18446744073709551615").bytes, UINT64_MAX);
    (void)state;
}

static void test_defaults_do_not_depend_on_the_environment(void **state)
{
    setenv("SPILLWAY_SIM_HOST_MEMORY", "1GiB", 1);
    assert_int_equal(spw_option_default(SPW_OPT_SPILLWAY_SIM_HOST_MEMORY).bytes, 64 * GIB);
    unsetenv("SPILLWAY_SIM_HOST_MEMORY");
    assert_int_equal(spw_option_default(SPW_OPT_SPILLWAY_SIM_PAYLOAD).permille, 250);
    assert_int_equal(spw_option_default(SPW_OPT_SPILLWAY_SIM_CAPTURE_VMM).word, SPW_SAFETY_SAFE);
    (void)state;
}

static void test_every_fallback_is_usable(void **state)
{
    for (int i = 0; i < SPW_OPT_COUNT; i++) {
        const struct spw_option_row *row = spw_option_row((enum spw_option)i);
        struct spw_option_value value;

        if (*row->fallback != '\0' && !spw_option_parse((enum spw_option)i, row->fallback, &value,
                                                        complaint, sizeof(complaint))) {
            fail_msg("%s: its own fallback \"%s\" is %s", row->name, row->fallback, complaint);
        }
        assert_int_equal(spw_option_find(row->name), i);
        assert_true(strlen(row->help) > 0);
    }
}

static void test_fallbacks(void **state)
{
    assert_true(get(SPW_OPT_SPILLWAY).on);
    assert_false(get(SPW_OPT_SPILLWAY).set);
    assert_int_equal(get(SPW_OPT_SPILLWAY_MODE).word, SPW_MODE_AUTO);
    assert_int_equal(get(SPW_OPT_SPILLWAY_SPILL).word, SPW_SPILL_AUTO);
    assert_int_equal(get(SPW_OPT_SPILLWAY_SITES).word, SPW_SITES_BOTH);
    assert_int_equal(get(SPW_OPT_SPILLWAY_GROWTH).permille, growth_fallback());
    assert_int_equal(get(SPW_OPT_SPILLWAY_SIM_HOST_MEMORY).bytes, 64 * GIB);
    assert_int_equal(get(SPW_OPT_SPILLWAY_SIM_DEVICES).bytes, 1);
    assert_null(get(SPW_OPT_SPILLWAY_STATS).text);
    assert_int_equal(get(SPW_OPT_SPILLWAY_LIMIT).bytes, 0);
    assert_string_equal(complaint, "");
}

static void test_values(void **state)
{
    struct spw_option_value value = get_with(SPW_OPT_SPILLWAY_LIMIT, "8GiB");

    assert_true(value.set);
    assert_false(value.percent);
    assert_int_equal(value.bytes, 8 * GIB);
    value = get_with(SPW_OPT_SPILLWAY_LIMIT, "80%");
    assert_true(value.set);
    assert_true(value.percent);
    assert_int_equal(value.permille, 800);
    assert_int_equal(get_with(SPW_OPT_SPILLWAY_MODE, "Segment").word, SPW_MODE_SEGMENT);
    assert_int_equal(get_with(SPW_OPT_SPILLWAY_SUMMARY, "rules").word, SPW_SUMMARY_RULES);
    assert_int_equal(get_with(SPW_OPT_SPILLWAY_SUMMARY, "0").word, SPW_SUMMARY_OFF);
    assert_int_equal(get_with(SPW_OPT_SPILLWAY_SUMMARY, "Yes").word, SPW_SUMMARY_ON);
    assert_int_equal(get_with(SPW_OPT_SPILLWAY_SPILL, "no").word, SPW_SPILL_OFF);
    assert_int_equal(get_with(SPW_OPT_SPILLWAY_SIM_SEED, "18446744073709551615").bytes, UINT64_MAX);
    assert_string_equal(get_with(SPW_OPT_SPILLWAY_STATS, "a %p.json").text, "a %p.json");
    assert_string_equal(complaint, "");
}

static void test_switch(void **state)
{
    static const char *const on[] = {"on", "1", "yes", "true", "ON"};
    static const char *const off[] = {"off", "0", "no", "false", "False"};

    for (size_t i = 0; i < sizeof(on) / sizeof(*on); i++) {
        assert_true(get_with(SPW_OPT_SPILLWAY_CHECK, on[i]).on);
        assert_true(get_with(SPW_OPT_SPILLWAY, off[i]).set);
        assert_false(get_with(SPW_OPT_SPILLWAY, off[i]).on);
    }
}

static void test_log(void **state)
{
    struct spw_option_value value = get_with(SPW_OPT_SPILLWAY_LOG, "debug:/tmp/a:b");

    assert_int_equal(value.word, 2);
    assert_string_equal(value.text, "/tmp/a:b");
    value = get_with(SPW_OPT_SPILLWAY_LOG, "info");
    assert_int_equal(value.word, 1);
    assert_null(value.text);
}

static void test_empty_is_not_set(void **state)
{
    assert_int_equal(get_with(SPW_OPT_SPILLWAY_GROWTH, "").permille, growth_fallback());
    assert_false(get_with(SPW_OPT_SPILLWAY_STATS, "").set);
    assert_string_equal(complaint, "");
}

static void test_complaints(void **state)
{
    struct spw_option_value value;

    expect_complaint(SPW_OPT_SPILLWAY_LIMIT, "12Gigs",
                     "SPILLWAY_LIMIT=12Gigs: not a size (expected 8GiB, 512MiB, 80% or bytes); "
                     "using the default");
    expect_complaint(SPW_OPT_SPILLWAY_LIMIT, "x12",
                     "SPILLWAY_LIMIT=x12: not a size (expected 8GiB, 512MiB, 80% or bytes); using "
                     "the default");
    value = expect_complaint(SPW_OPT_SPILLWAY_GROWTH, "1GiB",
                             "SPILLWAY_GROWTH=1GiB: not a percentage (expected 15%); using the "
                             "default");
    assert_int_equal(value.permille, growth_fallback());
    expect_complaint(SPW_OPT_SPILLWAY_SIM_DEVICES, "-1",
                     "SPILLWAY_SIM_DEVICES=-1: not a whole number (expected 0, 1, 2, ...); using "
                     "the default");
    expect_complaint(SPW_OPT_SPILLWAY_SIM_DEVICES, "2K",
                     "SPILLWAY_SIM_DEVICES=2K: not a whole number (expected 0, 1, 2, ...); using "
                     "the default");
    value = expect_complaint(SPW_OPT_SPILLWAY, "of",
                             "SPILLWAY=of: neither on nor off; using the default");
    assert_true(value.on);
    expect_complaint(SPW_OPT_SPILLWAY_MODE, "tenser",
                     "SPILLWAY_MODE=tenser: not one of auto, tensor, segment, observe (did you "
                     "mean tensor?); using the default");
    expect_complaint(SPW_OPT_SPILLWAY_MODE, "x",
                     "SPILLWAY_MODE=x: not one of auto, tensor, segment, observe; using the "
                     "default");
    expect_complaint(SPW_OPT_SPILLWAY_LOG, "warn:/tmp/x",
                     "SPILLWAY_LOG=warn:/tmp/x: not one of error, info, debug, with an optional "
                     ":PATH; using the default");
    expect_complaint(SPW_OPT_SPILLWAY_LOG, "inof",
                     "SPILLWAY_LOG=inof: not one of error, info, debug, with an optional :PATH "
                     "(did you mean info?); using the default");
    expect_complaint(SPW_OPT_SPILLWAY_LOG, "info:",
                     "SPILLWAY_LOG=info:: not one of error, info, debug, with an optional :PATH; "
                     "using the default");
}

static void test_complaint_of_a_flag(void **state)
{
    struct spw_option_value value = {.bytes = 7};

    assert_false(
        spw_option_parse(SPW_OPT_SPILLWAY_LIMIT, "lots", &value, complaint, sizeof(complaint)));
    assert_string_equal(complaint, "not a size (expected 8GiB, 512MiB, 80% or bytes)");
    assert_int_equal(value.bytes, 7); /* untouched */
    assert_false(
        spw_option_parse(SPW_OPT_SPILLWAY_STATS, "", &value, complaint, sizeof(complaint)));
    assert_string_equal(complaint, "empty");
    assert_false(spw_option_parse(SPW_OPT_SPILLWAY_LIMIT, "lots", &value, NULL, 0));
}

static void test_long_value_is_cut(void **state)
{
    char text[3000];

    memset(text, '9', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    get_with(SPW_OPT_SPILLWAY_LIMIT, text);
    assert_true(strlen(complaint) < 300);
    assert_non_null(strstr(complaint, "9: not a size"));
    setenv("SPILLWAY_LIMIT", text, 1);
    spw_option_get(SPW_OPT_SPILLWAY_LIMIT, complaint, 10);
    assert_string_equal(complaint, "SPILLWAY_");
    unsetenv("SPILLWAY_LIMIT");
}

static void test_bytes(void **state)
{
    struct spw_option_value size = {.bytes = 5};
    struct spw_option_value share = {.percent = true, .permille = 800};

    assert_int_equal(spw_option_bytes(&size, 1000), 5);
    assert_int_equal(spw_option_bytes(&share, 1000), 800);
    assert_int_equal(spw_option_bytes(&share, 999), 799);
    assert_int_equal(spw_option_bytes(&share, UINT64_MAX / 10 * 10), UINT64_MAX / 10 * 8);
}

static void collect(const char *name, void *context)
{
    strcat(context, name);
    strcat(context, " ");
}

static void test_unknown(void **state)
{
    char names[500] = "";

    setenv("SPILLWAY_LIMT", "1", 1);
    setenv("SPILLWAY_LIMIT", "1GiB", 1);
    setenv("SPILLWAY_RUN_DIR", "/tmp", 1);
    setenv("SPILLWAYS", "1", 1);
    spw_option_each_unknown(collect, names);
    assert_string_equal(names, "SPILLWAY_LIMT ");
    unsetenv("SPILLWAY_LIMT");
    unsetenv("SPILLWAY_LIMIT");
    unsetenv("SPILLWAY_RUN_DIR");
    unsetenv("SPILLWAYS");

    spw_option_unknown("SPILLWAY_LIMT", complaint, sizeof(complaint));
    assert_string_equal(complaint, "SPILLWAY_LIMT is not an option (did you mean SPILLWAY_LIMIT?)");
    spw_option_unknown("SPILLWAY_COFFEE", complaint, sizeof(complaint));
    assert_string_equal(complaint,
                        "SPILLWAY_COFFEE is not an option (spillway options lists them)");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counts_have_a_range),
        cmocka_unit_test(test_defaults_do_not_depend_on_the_environment),
        cmocka_unit_test(test_every_fallback_is_usable),
        cmocka_unit_test(test_fallbacks),
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_switch),
        cmocka_unit_test(test_log),
        cmocka_unit_test(test_empty_is_not_set),
        cmocka_unit_test(test_complaints),
        cmocka_unit_test(test_complaint_of_a_flag),
        cmocka_unit_test(test_long_value_is_cut),
        cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_unknown),
    };

    /* The caller's own settings must not decide the outcome. */
    for (int i = 0; i < SPW_OPT_COUNT; i++) {
        unsetenv(spw_option_row((enum spw_option)i)->name);
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
