#include "common/torch_settings.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void judge(const char *text, enum spw_torch_verdict verdict, const char *key)
{
    char found[SPW_TORCH_NAME];

    assert_int_equal(spw_torch_settings_judge(text, found), verdict);
    assert_string_equal(found, key);
}

static void replace(const char *text, const char *expected)
{
    char answer[SPW_TORCH_ANSWER];

    spw_torch_settings_replace(text, answer);
    assert_string_equal(answer, expected);
}

/* Each key of the table, alone and after another. */
static void test_table(void **state)
{
    const enum spw_torch_verdict SERVED = SPW_TORCH_OPEN, PINNED = SERVED;
    const enum spw_torch_verdict CHOICE = SPW_TORCH_CHOICE;

#define SPW_TORCH_KEY(key, class, why)                                                             \
    judge(#key ":1", class, class == SPW_TORCH_OPEN ? "" : #key);                                  \
    judge("max_split_size_mb:64, " #key " : 1", class, class == SPW_TORCH_OPEN ? "" : #key);       \
    judge(#key "x:1", SPW_TORCH_UNKNOWN, #key "x");
#include "common/torch_keys.def"
#undef SPW_TORCH_KEY
}

static void test_open(void **state)
{
    judge("", SPW_TORCH_OPEN, "");
    judge(" , ", SPW_TORCH_OPEN, "");
    judge("expandable_segments:True", SPW_TORCH_OPEN, "");
    judge("expandable_segments:False,", SPW_TORCH_OPEN, "");
    judge("roundup_power2_divisions:[256:1,512:2,>:4],expandable_segments:True", SPW_TORCH_OPEN,
          "");
}

static void test_choices(void **state)
{
    judge("backend:native", SPW_TORCH_CHOICE, "backend");
    judge("backend:cudaMallocAsync", SPW_TORCH_SAME, "backend");
    judge("expandable_segments:True, backend : cudaMallocAsync", SPW_TORCH_SAME, "backend");
    judge("backend:cudaMallocAsyncs", SPW_TORCH_CHOICE, "backend");
    judge("some_key:[1,2],expandable_segments:True", SPW_TORCH_UNKNOWN, "some_key");
    /* A backend outweighs the rest, wherever it stands. */
    judge("some_key:1,backend:native", SPW_TORCH_CHOICE, "backend");
    judge("per_process_memory_fraction:0.5,backend:cudaMallocAsync", SPW_TORCH_SAME, "backend");
    /* Of the others the first decides. */
    judge("per_process_memory_fraction:0.5,some_key:1", SPW_TORCH_CHOICE,
          "per_process_memory_fraction");
}

static void test_malformed(void **state)
{
    char text[2 * SPW_TORCH_ANSWER];

    judge("expandable_segments", SPW_TORCH_MALFORMED, "expandable_segments");
    judge("expandable_segments:", SPW_TORCH_MALFORMED, "expandable_segments");
    judge(":True", SPW_TORCH_MALFORMED, ":True");
    judge("roundup_power2_divisions:[256:1,512:2", SPW_TORCH_MALFORMED, "roundup_power2_divisions");
    judge("max_split_size_mb:1]", SPW_TORCH_MALFORMED, "max_split_size_mb");
    memset(text, 'a', sizeof(text));
    text[sizeof(text) - 1] = '\0';
    judge(text, SPW_TORCH_MALFORMED, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa");
    memcpy(text, "max_split_size_mb:", strlen("max_split_size_mb:"));
    judge(text, SPW_TORCH_MALFORMED, "max_split_size_mb");
}

static void test_replace(void **state)
{
    static const char all[] = "backend:cudaMallocAsync";

    replace("", all);
    replace("expandable_segments:True", all);
    replace("backend:native,some_key:1,per_process_memory_fraction:0.5", all);
    replace(" pinned_use_background_threads : True,expandable_segments:True,"
            "roundup_power2_divisions:[1:2,>:4],pinned_num_register_threads:8",
            "backend:cudaMallocAsync,pinned_use_background_threads:True,"
            "pinned_num_register_threads:8");
    replace("pinned_num_register_threads", all);
}

/* What does not fit is left out as a whole. */
static void test_long(void **state)
{
    static const char entry[] = "pinned_num_register_threads:8,";
    char text[8 * SPW_TORCH_ANSWER] = "";
    char answer[SPW_TORCH_ANSWER];

    for (int i = 0; i < 100; i++) {
        strcat(text, entry);
    }
    spw_torch_settings_replace(text, answer);
    assert_in_range(strlen(answer), SPW_TORCH_ANSWER - sizeof(entry), SPW_TORCH_ANSWER - 1);
    assert_string_equal(answer + strlen(answer) - 2, ":8");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table),   cmocka_unit_test(test_open),
        cmocka_unit_test(test_choices), cmocka_unit_test(test_malformed),
        cmocka_unit_test(test_replace), cmocka_unit_test(test_long),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
