/* Reading policies and matching rules, also when allocations fail. Messages about bad files are
 * tested in tests/cli. */
#include "policy/modules.h"
#include "policy/policy.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "malloc_faults.h"

#define RULE(name, match, action)                                                                  \
    "{\"name\":\"" name "\",\"match\":" match ",\"action\":" action "}"

static struct spw_json json;

/* A policy of these rules, up to a NULL; it must be good. */
static struct spw_policy *parse(const char *rule, ...)
{
    struct spw_policy_complaints complaints;
    struct spw_policy *policy;
    char text[8192] = "{\"version\":1,\"rules\":[";
    const char *before = "\n";
    va_list rules;

    va_start(rules, rule);
    for (; rule != NULL; rule = va_arg(rules, const char *)) {
        strcat(strcat(text, before), rule);
        before = ",\n";
    }
    va_end(rules);
    strcat(text, "]}");
    policy = spw_policy_parse(text, strlen(text), &json, &complaints);
    if (policy == NULL) {
        fail_msg("%s: %s", text, complaints.count > 0 ? complaints.items[0].text : "no memory");
    }
    assert_int_equal(complaints.count, 0);
    spw_policy_complaints_fini(&complaints);
    return policy;
}

/* Which rule decides the allocation at a site, asked both ways. */
static int decide(const struct spw_policy *policy, const char *text)
{
    static struct spw_callsite_text site;
    char complaint[256];
    int expected = SPW_POLICY_NO_RULE;
    uint64_t candidates;
    int rule;

    assert_true(spw_callsite_parse(text, &site, complaint, sizeof(complaint)));
    for (size_t i = 0; i < policy->rule_count && expected < 0; i++) {
        if (spw_policy_mismatch(&policy->rules[i], &site.site, &site.request) == NULL) {
            expected = (int)i;
        }
    }
    candidates = spw_policy_candidates(policy, &site.site);
    rule = spw_policy_decide(policy, candidates, &site.request);
    assert_int_equal(rule, expected);
    return rule;
}

/* One condition against a site. */
static bool holds(const char *match, const char *site)
{
    char rule[2048];
    struct spw_policy *policy;
    int decided;

    snprintf(rule, sizeof(rule), RULE("r", "%s", "{}"), match);
    policy = parse(rule, NULL);
    decided = decide(policy, site);
    spw_policy_destroy(policy);
    return decided == 0;
}

static void test_first_match_wins(void **state)
{
    struct spw_policy *policy =
        parse(RULE("small", "{\"size\":{\"max\":\"1MiB\"}}", "{}"),
              RULE("forward", "{\"python\":{\"function\":\"forward\"}}", "{}"),
              RULE("all", "{}", "{}"), NULL);

    assert_int_equal(decide(policy, "python:a.py:forward:1;size:1MiB"), 0);
    assert_int_equal(decide(policy, "python:a.py:forward:1;size:2MiB"), 1);
    assert_int_equal(decide(policy, "python:a.py:forward:1"), 1);
    assert_int_equal(decide(policy, "python:a.py:backward:1;size:2MiB"), 2);
    assert_int_equal(decide(policy, ""), 2);
    spw_policy_destroy(policy);
}

static void test_no_rule_matches(void **state)
{
    struct spw_policy *policy = parse(NULL);

    assert_int_equal(decide(policy, "size:1"), SPW_POLICY_NO_RULE);
    spw_policy_destroy(policy);
}

/* One site's candidates serve all its allocations, and end at the first rule that is certain. */
static void test_candidates(void **state)
{
    struct spw_policy *policy = parse(
        RULE("other", "{\"thread\":\"x\"}", "{}"), RULE("big", "{\"size\":{\"min\":100}}", "{}"),
        RULE("first", "{\"thread\":\"t*\",\"nth\":1}", "{}"), RULE("t", "{\"thread\":\"t\"}", "{}"),
        RULE("behind", "{\"process\":\"p\"}", "{}"), NULL);
    struct spw_callsite_facts site = {.thread = "t", .process = "p", .rank = -1};
    struct spw_request_facts request = {.size = 99, .device = 0, .nth = 1};
    uint64_t candidates = spw_policy_candidates(policy, &site);

    assert_int_equal(candidates, 0xE);
    assert_int_equal(spw_policy_decide(policy, candidates, &request), 2);
    request.nth = 2;
    assert_int_equal(spw_policy_decide(policy, candidates, &request), 3);
    request.size = 100;
    assert_int_equal(spw_policy_decide(policy, candidates, &request), 1);
    assert_false(policy->uses_python);
    assert_false(policy->uses_native);
    spw_policy_destroy(policy);
}

static void test_frames(void **state)
{
    const char *site = "python:/x/lib/ops.py:gelu:7;python:/x/train.py:Net.forward:42;"
                       "native:libc10.so:alloc(int);native:libtorch.so:at::gelu(int)";

    assert_true(holds("{\"python\":{\"file\":\"train.py\",\"function\":\"forward\"}}", site));
    assert_true(holds("{\"python\":{\"file\":\"train.py\",\"lines\":\"40-50\"}}", site));
    assert_false(holds("{\"python\":{\"file\":\"train.py\",\"lines\":\"43-\"}}", site));
    assert_false(holds("{\"python\":{\"file\":\"train.py\",\"function\":\"gelu\"}}", site));
    assert_false(holds("{\"python\":{\"file\":\"train.py\",\"frame\":\"top\"}}", site));
    assert_true(holds("{\"python\":{\"file\":\"ops.py\",\"frame\":\"top\"}}", site));
    assert_true(holds("{\"python\":{\"file\":\"train.py\",\"frame\":\"any\"}}", site));
    assert_true(holds("{\"python\":[{\"file\":\"no.py\"},{\"function\":[\"x\",\"gelu\"]}]}", site));
    assert_false(holds("{\"python\":[{\"file\":\"no.py\"},{\"lines\":[1,2,\"8-9\"]}]}", site));
    assert_true(holds("{\"native\":{\"symbol\":\"gelu\"}}", site));
    assert_true(holds("{\"native\":{\"library\":\"libtorch*\",\"symbol\":\"at::*\"}}", site));
    assert_false(holds("{\"native\":{\"library\":\"libc10.so\",\"symbol\":\"at::*\"}}", site));
    assert_false(holds("{\"native\":{\"symbol\":\"gelu\",\"frame\":\"top\"}}", site));
    assert_true(holds("{\"native\":{\"symbol\":\"alloc\",\"frame\":\"top\"}}", site));
    assert_true(
        holds("{\"python\":{\"function\":\"gelu\"},\"native\":{\"symbol\":\"gelu\"}}", site));
    assert_false(holds("{\"python\":{\"function\":\"gelu\"},\"native\":{\"symbol\":\"x\"}}", site));
    assert_false(holds("{\"python\":{\"function\":\"*\"}}", "thread:x"));
    assert_false(holds("{\"python\":{\"function\":\"*\",\"frame\":\"top\"}}", "thread:x"));
    assert_false(holds("{\"python\":{\"lines\":\"1-\"}}", "python:a:b:"));
}

static void test_other_keys(void **state)
{
    assert_true(holds("{\"thread\":[\"x\",\"pt_autograd_*\"]}", "thread:pt_autograd_0"));
    assert_false(holds("{\"thread\":\"*\"}", ""));
    assert_true(holds("{\"tag\":[\"x\",\"kv-*\"]}", "tag:kv-cache"));
    assert_false(holds("{\"tag\":\"kv-*\"}", "tag:weights"));
    assert_false(holds("{\"tag\":\"*\"}", "thread:kv-cache"));
    assert_true(holds("{\"node\":\"Addmm*\"}", "node:AddmmBackward0"));
    assert_false(holds("{\"node\":\"Addmm*\"}", "thread:AddmmBackward0"));
    assert_true(holds("{\"module_class\":\"Att*\"}", "module:GPT/Block/Attention"));
    assert_true(holds("{\"module_class\":\"GPT\"}", "module:GPT"));
    assert_false(holds("{\"module_class\":\"Block\"}", "module:GPT/Block/Attention"));
    assert_false(holds("{\"module_class\":\"*\"}", "python:a.py:forward:1"));
    assert_true(holds("{\"module\":\"Block/*\"}", "module:GPT/Block/Attention"));
    assert_true(holds("{\"module\":\"GPT/**\"}", "module:GPT/Block/Attention"));
    assert_false(holds("{\"module\":\"GPT/*\"}", "module:GPT/Block/Attention"));
    assert_false(holds("{\"module\":\"**\"}", "python:a.py:forward:1"));
    assert_true(holds("{\"process\":\"train.py\"}", "process:train.py"));
    assert_true(holds("{\"rank\":0}", "rank:0"));
    assert_false(holds("{\"rank\":0}", ""));
    assert_true(holds("{\"rank\":[\"1-3\",7]}", "rank:7"));
    assert_false(holds("{\"rank\":[\"1-3\",7]}", "rank:4"));
    assert_true(holds("{\"device\":\"1-\"}", "device:9"));
    assert_false(holds("{\"device\":0}", ""));
    assert_true(holds("{\"api\":\"cuMem*Async\"}", "api:cuMemAllocAsync"));
    assert_false(holds("{\"api\":\"cuMem*Async\"}", "api:cuMemAlloc"));
    assert_true(holds("{\"api\":\"PyTorch\"}", "api:PyTorch"));
    assert_true(holds("{\"nth\":\"1-2\"}", "nth:2"));
    assert_false(holds("{\"nth\":\"1-2\"}", "nth:3"));
    assert_true(holds("{\"nth_in_step\":\"1-2\"}", "nth:3;nth_in_step:2"));
    assert_false(holds("{\"nth_in_step\":\"1-2\"}", "nth:2;nth_in_step:3"));
    assert_false(holds("{\"nth_in_step\":\"1-\"}", "nth:1"));
    assert_true(holds("{\"size\":{\"min\":\"1KiB\",\"max\":2048}}", "size:1024"));
    assert_true(holds("{\"size\":{\"min\":\"1KiB\",\"max\":2048}}", "size:2048"));
    assert_false(holds("{\"size\":{\"min\":\"1KiB\",\"max\":2048}}", "size:2049"));
    assert_false(holds("{\"size\":{\"min\":\"1KiB\",\"max\":2048}}", "size:1023"));
    assert_true(holds("{\"size\":[{\"max\":10},{\"min\":20}]}", "size:20"));
    assert_false(holds("{\"size\":[{\"max\":10},{\"min\":20}]}", "size:15"));
    assert_false(holds("{\"size\":{\"max\":10}}", ""));
}

/* Native frames are asked for by rules for frames and for nodes, before a rule that is certain. */
static void test_native_frames_that_are_needed(void **state)
{
    static const struct {
        const char *first, *second;
        bool uses, needs;
    } cases[] = {
        {"{\"native\":{\"symbol\":\"a\"}}", "{}", true, true},
        {"{\"node\":\"Addmm*\"}", "{}", true, true},
        {"{\"thread\":\"t\",\"node\":\"Addmm*\"}", "{}", true, true},
        {"{\"thread\":\"x\",\"node\":\"Addmm*\"}", "{}", true, false},
        {"{\"thread\":\"t\"}", "{\"node\":\"Addmm*\"}", true, false},
        {"{\"thread\":\"t\"}", "{}", false, false},
    };
    const struct spw_callsite_facts site = {.thread = "t", .rank = -1};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char first[256], second[256];
        struct spw_policy *policy;

        snprintf(first, sizeof(first), RULE("a", "%s", "{}"), cases[i].first);
        snprintf(second, sizeof(second), RULE("b", "%s", "{}"), cases[i].second);
        policy = parse(first, second, NULL);
        assert_int_equal(policy->uses_native, cases[i].uses);
        assert_int_equal(spw_policy_needs_native(policy, &site), cases[i].needs);
        spw_policy_destroy(policy);
    }
}

static void test_actions(void **state)
{
    struct spw_policy *policy = parse(
        RULE("a", "{\"rank\":0}",
             "{\"placement\":\"host\",\"movable\":false,\"priority\":-7,\"region\":\"w\","
             "\"limit\":{\"max\":\"45%\",\"then\":\"warn\"},\"commit\":\"lazy\",\"log\":true}"),
        RULE("b", "{}",
             "{\"host_share\":\"12.5%\",\"limit\":{\"max\":\"8GiB\",\"then\":\"fail\"}}"),
        NULL);
    const struct spw_policy_action *action = &policy->rules[0].action;

    assert_int_equal(policy->rule_count, 2);
    assert_string_equal(policy->rules[0].name, "a");
    assert_int_equal(policy->rules[0].line, 2);
    assert_int_equal(policy->rules[1].line, 3);
    assert_int_equal(action->placement, SPW_PLACEMENT_HOST);
    assert_int_equal(action->movable, SPW_SWITCH_OFF);
    assert_true(action->priority.set);
    assert_int_equal(action->priority.value, -7);
    assert_true(action->limit.max.percent);
    assert_int_equal(action->limit.max.permille, 450);
    assert_int_equal(action->limit.then, SPW_THEN_WARN);
    assert_false(action->host_share.set);
    assert_string_equal(action->region, "w");
    assert_int_equal(action->commit, SPW_COMMIT_LAZY);
    assert_int_equal(action->log, SPW_SWITCH_ON);
    action = &policy->rules[1].action;
    assert_int_equal(action->placement, 0);
    assert_false(action->priority.set);
    assert_int_equal(action->host_share.permille, 125);
    assert_int_equal(action->limit.max.bytes, UINT64_C(8) << 30);
    assert_int_equal(action->limit.then, SPW_THEN_FAIL);
    assert_null(action->region);
    spw_policy_destroy(policy);
}

/* Rules about modules decide on no allocation, and need no frames of call sites. */
static void test_rules_about_modules(void **state)
{
    struct spw_policy *policy =
        parse(RULE("a", "{\"module\":\"a.*\",\"rank\":0}", "{\"recompute\":true,\"every\":2}"),
              RULE("b", "{}", "{\"recompute\":true,\"share\":\"12.5%\"}"),
              RULE("c", "{\"process\":\"t.py\"}", "{}"),
              RULE("d", "{\"module_class\":[\"x\\\"y\",\"z\"],\"process\":\"t.py\"}",
                   "{\"recompute\":false}"),
              NULL);
    static const char b[] = "{\"name\": \"b\", \"module\": [], \"module_class\": [], "
                            "\"recompute\": true, \"every\": 0, \"permille\": 125}";
    char text[1024], expected[1024];

    assert_int_equal(policy->recomputes, 0xB);
    assert_false(policy->uses_python);
    assert_int_equal(decide(policy, "module:a.b;process:t.py"), 2);
    assert_int_equal(decide(policy, "module:a.b;process:u.py"), SPW_POLICY_NO_RULE);

    assert_true(spw_policy_modules_text(policy, "u.py", 1, text, sizeof(text)));
    snprintf(expected, sizeof(expected), "[%s]", b);
    assert_string_equal(text, expected);
    assert_false(spw_policy_modules_text(policy, "u.py", 1, text, strlen(expected)));
    assert_true(spw_policy_modules_text(policy, "u.py", 1, text, strlen(expected) + 1));
    assert_true(spw_policy_modules_text(policy, "t.py", 0, text, sizeof(text)));
    snprintf(expected, sizeof(expected),
             "[{\"name\": \"a\", \"module\": [\"a.*\"], \"module_class\": [], "
             "\"recompute\": true, \"every\": 2, \"permille\": 1000}, %s, {\"name\": \"d\", "
             "\"module\": [], \"module_class\": [\"x\\u0022y\", \"z\"], \"recompute\": false, "
             "\"every\": 0, \"permille\": 1000}]",
             b);
    assert_string_equal(text, expected);
    spw_policy_destroy(policy);

    policy = parse(RULE("c", "{}", "{}"), NULL);
    assert_false(spw_policy_modules_text(policy, "t.py", 0, text, sizeof(text)));
    spw_policy_destroy(policy);
}

/* In every kind of object; the second value is read no more than the first is lost. */
static void test_a_key_given_twice(void **state)
{
    static const char *const texts[][2] = {
        {"version", "{\"version\":1,\"version\":1,\"rules\":[]}"},
        {"rules", "{\"version\":1,\"rules\":[],\"rules\":[]}"},
        {"name", "{\"version\":1,\"rules\":[{\"name\":\"a\",\"name\":\"a\",\"action\":{}}]}"},
        {"match", "{\"version\":1,\"rules\":[{\"name\":\"a\",\"match\":{},\"action\":{},"
                  "\"match\":{\"thread\":7}}]}"},
        {"thread", "{\"version\":1,\"rules\":[{\"name\":\"a\",\"match\":{\"thread\":\"x\","
                   "\"thread\":\"x\"},\"action\":{}}]}"},
        {"movable", "{\"version\":1,\"rules\":[{\"name\":\"a\",\"action\":{\"movable\":true,"
                    "\"movable\":true}}]}"},
    };

    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
        struct spw_policy_complaints complaints;
        char expected[64];

        snprintf(expected, sizeof(expected), "\"%s\" is given twice", texts[i][0]);
        assert_null(spw_policy_parse(texts[i][1], strlen(texts[i][1]), &json, &complaints));
        assert_int_equal(complaints.count, 1);
        assert_non_null(strstr(complaints.items[0].text, expected));
        spw_policy_complaints_fini(&complaints);
    }
}

/* A parser that reads another text than the one it is given. */
static const char *other_text;

static cJSON *parse_other(const char *text, size_t length, const char **ret_end,
                          cJSON_bool terminated)
{
    (void)text;
    (void)length;
    return json.parse(other_text, strlen(other_text), ret_end, terminated);
}

static void test_a_tree_of_another_shape_is_refused(void **state)
{
    static const char text[] = "{\"version\":1,\"rules\":[{\"name\":\"a\",\"action\":{}}]}";
    static const char *const others[] = {
        "{\"version\":1,\"rules\":[{\"name\":\"a\",\"action\":{}},{\"name\":\"b\",\"action\":{}}]}",
        "{\"version\":1,\"rules\":[]}",
        "{\"version\":1,\"rules\":[{\"name\":\"a\",\"action\":{\"movable\":true}}]}",
        "{\"version\":1}",
        "{\"version\":1,\"rules\":[{\"name\":\"a\",\"action\":{}}],\"comment\":\"\"}",
    };
    struct spw_json liar = {.parse = parse_other, .destroy = json.destroy};

    for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
        struct spw_policy_complaints complaints;
        bool told = false;

        other_text = others[i];
        assert_null(spw_policy_parse(text, sizeof(text) - 1, &liar, &complaints));
        for (size_t j = 0; j < complaints.count; j++) {
            told |= strstr(complaints.items[j].text, "reads the text in another way") != NULL;
        }
        assert_true(told);
        spw_policy_complaints_fini(&complaints);
    }
    (void)state;
}

/* Reads a text while its n-th allocation fails; *ret_failed is false when there are fewer. */
static struct spw_policy *parse_failing(const char *text, long n, bool *ret_failed,
                                        struct spw_policy_complaints *ret_complaints)
{
    struct spw_policy *policy;

    calls_until_failure = n;
    policy = spw_policy_parse(text, strlen(text), &json, ret_complaints);
    *ret_failed = calls_until_failure == 0;
    calls_until_failure = 0;
    return policy;
}

/* When any allocation fails, there is no policy or a whole one; nothing leaks (valgrind sees it).
 */
static void test_without_memory(void **state)
{
    static const char text[] =
        "{\"version\":1,\"rules\":[{\"name\":\"a\",\"match\":{\"python\":{\"file\":[\"a\","
        "\"b\"],\"lines\":1},\"size\":{\"min\":1}},\"action\":{\"region\":\"r\"}}]}";
    struct spw_policy_complaints complaints;
    struct spw_policy *policy;
    bool failed = true;
    long n;

    for (n = 1; failed; n++) {
        policy = parse_failing(text, n, &failed, &complaints);
        assert_true(failed == (policy == NULL));
        spw_policy_complaints_fini(&complaints);
    }
    assert_true(n > 4);
    assert_int_equal(decide(policy, "python:b:f:1;size:1"), 0);
    assert_string_equal(policy->rules[0].action.region, "r");
    spw_policy_destroy(policy);
}

static void test_complaints_without_memory(void **state)
{
    static const char text[] = "{\"version\":1,\"a\":1,\"b\":2,\"rules\":[{}]}";
    struct spw_policy_complaints complaints;
    bool failed = true;

    for (long n = 1; failed; n++) {
        assert_null(parse_failing(text, n, &failed, &complaints));
        assert_true(complaints.count <= 4);
        assert_true(failed || complaints.count == 4);
        spw_policy_complaints_fini(&complaints);
    }
}

static void test_the_library_is_looked_for(void **state)
{
    struct spw_json opened;

    assert_true(spw_policy_json_open("/nowhere", &opened));
    assert_non_null(opened.parse);
    spw_policy_json_close(&opened);
    assert_null(opened.parse);
}

static int open_json(void **state)
{
    return spw_policy_json_open(NULL, &json) ? 0 : -1;
}

static int close_json(void **state)
{
    spw_policy_json_close(&json);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_first_match_wins),
        cmocka_unit_test(test_no_rule_matches),
        cmocka_unit_test(test_candidates),
        cmocka_unit_test(test_frames),
        cmocka_unit_test(test_other_keys),
        cmocka_unit_test(test_actions),
        cmocka_unit_test(test_rules_about_modules),
        cmocka_unit_test(test_a_key_given_twice),
        cmocka_unit_test(test_a_tree_of_another_shape_is_refused),
        cmocka_unit_test(test_without_memory),
        cmocka_unit_test(test_complaints_without_memory),
        cmocka_unit_test(test_the_library_is_looked_for),
        cmocka_unit_test(test_native_frames_that_are_needed),
    };

    return cmocka_run_group_tests(tests, open_json, close_json);
}
