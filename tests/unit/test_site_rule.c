#include "callsite/label.h"
#include "callsite/rule.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { MIB = 1 << 20 };

static void test_smallest_of_the_cheapest(void **state)
{
    const struct spw_callsite_group groups[] = {
        {.bytes = 8000 * (uint64_t)MIB, .allocs = 900, .frees = 880}, /* activations */
        {.bytes = 700 * MIB, .allocs = 100, .frees = 90},             /* some of them */
        {.bytes = 949 * MIB, .allocs = 50, .optimizer = true},        /* state of an optimizer */
        {.bytes = 1200 * MIB, .allocs = 50, .optimizer = true},
        {.bytes = 660 * MIB, .allocs = 50}, /* weights */
    };

    assert_int_equal(spw_callsite_group_choose(groups, 5, 644 * MIB), 2);
    assert_int_equal(spw_callsite_group_choose(groups, 5, 1000 * MIB), 3);
    assert_int_equal(spw_callsite_group_choose(groups, 5, 2000 * (uint64_t)MIB), 0);
    assert_int_equal(spw_callsite_group_choose(groups, 2, 644 * MIB), 1);
    assert_int_equal(spw_callsite_group_choose(groups, 5, 0), 0);
    assert_int_equal(spw_callsite_group_choose(groups, 5, 9000 * (uint64_t)MIB), 0);
    assert_int_equal(spw_callsite_group_choose(groups, 0, 1), -1);
}

static void test_groups_by_condition(void **state)
{
    struct spw_callsite_group groups[3];
    int count = spw_callsite_group_add(
        groups, 0, &(struct spw_callsite_group){.hash = 7, .bytes = 1, .optimizer = true});

    count =
        spw_callsite_group_add(groups, count, &(struct spw_callsite_group){.hash = 8, .bytes = 2});
    count =
        spw_callsite_group_add(groups, count, &(struct spw_callsite_group){.hash = 7, .bytes = 4});
    assert_int_equal(count, 2);
    assert_int_equal(groups[0].bytes, 5);
    assert_false(groups[0].optimizer);
}

static const struct spw_python_frame model[] = {
    {"/v/lib/python3.11/site-packages/torch/nn/functional.py", "linear", 1},
    {"/v/lib/python3.11/site-packages/transformers/pytorch_utils.py", "forward", 119},
    {"/v/lib/python3.11/site-packages/transformers/models/gpt2/modeling_gpt2.py", "forward", 240},
    {"/home/u/train.py", "main", 30},
};
static const struct spw_python_frame cell[] = {
    {"/v/lib/python3.11/site-packages/torch/nn/functional.py", "linear", 1},
    {"<ipython-input-3-ab12>", "<module>", 2},
    {"/v/lib/python3.11/site-packages/IPython/core/interactiveshell.py", "run_code", 3823},
};

static void test_labels(void **state)
{
    char label[SPW_CALLSITE_LABEL];

    spw_callsite_label(&(struct spw_callsite_facts){.python = model, .python_count = 4}, label,
                       sizeof(label));
    assert_string_equal(label, "train.py:30 main via modeling_gpt2.py:240 forward via "
                               "functional.py:1 linear");
    spw_callsite_label(&(struct spw_callsite_facts){.python = cell, .python_count = 3}, label,
                       sizeof(label));
    assert_string_equal(label, "<ipython-input-3-ab12>:2 <module> via functional.py:1 linear");
    spw_callsite_label(
        &(struct spw_callsite_facts){
            .python = &model[3], .python_count = 1, .thread = "worker", .tag = "weights"},
        label, sizeof(label));
    assert_string_equal(label, "train.py:30 main on worker tagged weights");
}

/* A row says what tells it from another one of the same label. */
static void test_labels_apart(void **state)
{
    struct spw_python_frame other_model[4];
    const struct spw_native_frame one_native[] = {
        {"a.so", "same"},
        {"a.so", "at::(anonymous namespace)::one(int, (anonymous namespace)::t)"}};
    const struct spw_native_frame other_native[] = {{"a.so", "same"}, {"a.so", "other"}};
    struct spw_callsite_facts one = {.python = model, .python_count = 4, .thread = "main"};
    struct spw_callsite_facts other = {.python = other_model, .python_count = 4, .thread = "main"};
    char text[SPW_CALLSITE_LABEL];

    memcpy(other_model, model, sizeof(model));
    assert_false(spw_callsite_label_apart(&one, &other, text, sizeof(text)));
    assert_string_equal(text, "");
    other_model[2].line = 250;
    assert_true(spw_callsite_label_apart(&one, &other, text, sizeof(text)));
    assert_string_equal(text, "modeling_gpt2.py:240 forward");
    assert_true(spw_callsite_label_apart(&other, &one, text, sizeof(text)));
    assert_string_equal(text, "modeling_gpt2.py:250 forward");
    other_model[2] = model[2];
    other.python_count = 3; /* the other one has no such caller */
    assert_true(spw_callsite_label_apart(&one, &other, text, sizeof(text)));
    assert_string_equal(text, "train.py:30 main");
    assert_false(spw_callsite_label_apart(&other, &one, text, sizeof(text)));
    other.python_count = 4;
    one.native = one_native;
    other.native = other_native;
    one.native_count = other.native_count = 2;
    assert_true(spw_callsite_label_apart(&one, &other, text, sizeof(text)));
    assert_string_equal(text, "at::(anonymous namespace)::one");
    other.native = one_native;
    one.thread = "worker";
    assert_true(spw_callsite_label_apart(&one, &other, text, sizeof(text)));
    assert_string_equal(text, "thread worker");
}

static const struct spw_native_frame addmm[] = {
    {"libc10.so", "c10::alloc(unsigned long)"},
    {"libtorch_cpu.so", "at::_ops::empty_memory_format::call(c10::ArrayRef<c10::SymInt>)"},
    {"libtorch_cpu.so", "at::_ops::addmm::call(at::Tensor const&, at::Tensor const&)"},
    {"libtorch_python.so", "torch::autograd::THPVariable_addmm"},
};

static void test_operators(void **state)
{
    struct spw_callsite_facts facts = {
        .python = cell, .python_count = 3, .native = addmm, .native_count = 4};
    char label[SPW_CALLSITE_LABEL], name[16];

    spw_callsite_label(&facts, label, sizeof(label));
    assert_string_equal(label, "<ipython-input-3-ab12>:2 <module> via functional.py:1 linear, "
                               "aten::addmm");
    facts.modules = "GPT/Conv1D";
    spw_callsite_label(&facts, label, sizeof(label));
    assert_string_equal(label, "<ipython-input-3-ab12>:2 <module> via functional.py:1 linear, "
                               "aten::addmm in Conv1D");
    facts.modules = NULL;
    facts.node = "AddmmBackward0";
    spw_callsite_label(&facts, label, sizeof(label));
    assert_string_equal(label, "<ipython-input-3-ab12>:2 <module> via functional.py:1 linear, "
                               "AddmmBackward0");
    facts = (struct spw_callsite_facts){.native = addmm, .native_count = 4, .thread = "worker"};
    spw_callsite_label(&facts, label, sizeof(label));
    assert_string_equal(label, "aten::addmm on worker");
    facts.native_count = 2;
    assert_true(spw_callsite_operator(&facts, name, sizeof(name)));
    assert_string_equal(name, "aten::empty_mem"); /* cut */
    facts.native_count = 1;
    assert_false(spw_callsite_operator(&facts, name, sizeof(name)));
    spw_callsite_label(&facts, label, sizeof(label));
    assert_string_equal(label, "c10::alloc(unsigned long) in libc10.so on worker");
}

static void test_conditions(void **state)
{
    const struct spw_callsite_facts facts = {.python = model, .python_count = 4};
    const struct spw_callsite_facts other = {.python = cell, .python_count = 3};
    struct spw_callsite_condition own, inner;
    char rule[SPW_CALLSITE_RULE];

    assert_true(spw_callsite_condition_of(&facts, false, &own));
    assert_true(spw_callsite_has_inner(&facts));
    assert_true(spw_callsite_condition_of(&facts, true, &inner));
    assert_true(spw_callsite_condition_holds(&own, &facts));
    assert_false(spw_callsite_condition_holds(&own, &other));
    assert_true(spw_callsite_condition_holds(&inner, &other));
    assert_true(spw_callsite_condition_hash(&own) != spw_callsite_condition_hash(&inner));
    spw_callsite_condition_put(&inner, rule);
    assert_string_equal(rule, "{\"name\": \"to-host\", \"match\": {\"python\": {\"file\": "
                              "\"functional.py\", \"function\": \"linear\", \"lines\": 1}}, "
                              "\"action\": {\"placement\": \"host\"}}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_smallest_of_the_cheapest),
        cmocka_unit_test(test_groups_by_condition),
        cmocka_unit_test(test_labels),
        cmocka_unit_test(test_labels_apart),
        cmocka_unit_test(test_operators),
        cmocka_unit_test(test_conditions),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
