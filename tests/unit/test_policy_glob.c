#include "policy/glob.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static bool match(enum spw_glob_kind kind, const char *pattern, const char *name)
{
    struct spw_glob_token tokens[SPW_GLOB_MAX];
    struct spw_glob glob = {.kind = kind, .tokens = tokens, .text = pattern};
    const char *problem = NULL;

    glob.count = spw_policy_glob_compile(pattern, tokens, &problem);
    if (glob.count == 0) {
        fail_msg("%s: %s", pattern, problem);
    }
    return spw_policy_glob_match(&glob, name);
}

struct row {
    enum spw_glob_kind kind;
    const char *pattern;
    const char *name;
    bool matches;
};

static const struct row rows[] = {
    {SPW_GLOB_PLAIN, "abc", "abc", true},
    {SPW_GLOB_PLAIN, "abc", "abcd", false},
    {SPW_GLOB_PLAIN, "abc", "xabc", false},
    {SPW_GLOB_PLAIN, "Abc", "abc", false},
    {SPW_GLOB_PLAIN, "*", "", true},
    {SPW_GLOB_PLAIN, "a*c", "ac", true},
    {SPW_GLOB_PLAIN, "a*c", "abbbc/x/c", true},
    {SPW_GLOB_PLAIN, "a*c", "abd", false},
    {SPW_GLOB_PLAIN, "*a*b*", "xxaxxbxx", true},
    {SPW_GLOB_PLAIN, "pt_autograd_?", "pt_autograd_0", true},
    {SPW_GLOB_PLAIN, "pt_autograd_?", "pt_autograd_10", false},
    {SPW_GLOB_PLAIN, "?", "\xe6\x96\x87", true},
    {SPW_GLOB_PLAIN, "[\xc3\xa0-\xc3\xbf]x", "\xc3\xa4x", true},
    {SPW_GLOB_PLAIN, "?", "\xff", true},
    {SPW_GLOB_PLAIN, "[a-c]", "b", true},
    {SPW_GLOB_PLAIN, "[a-c]", "d", false},
    {SPW_GLOB_PLAIN, "[!a-c]", "d", true},
    {SPW_GLOB_PLAIN, "[^a-c]", "b", false},
    {SPW_GLOB_PLAIN, "[]]", "]", true},
    {SPW_GLOB_PLAIN, "[!]]", "]", false},
    {SPW_GLOB_PLAIN, "[a-]", "-", true},
    {SPW_GLOB_PLAIN, "[\\]a]x", "]x", true},
    {SPW_GLOB_PLAIN, "\\*", "*", true},
    {SPW_GLOB_PLAIN, "\\*", "a", false},
    {SPW_GLOB_PLAIN, "operator\\[]", "operator[]", true},
    {SPW_GLOB_PATH, "train.py", "/home/u/train.py", true},
    {SPW_GLOB_PATH, "train.py", "train.py", true},
    {SPW_GLOB_PATH, "train.py", "/home/u/my_train.py", false},
    {SPW_GLOB_PATH, "torch/optim/*.py", "/v/site-packages/torch/optim/adam.py", true},
    {SPW_GLOB_PATH, "torch/optim/*.py", "/v/site-packages/torch/optim/x/adam.py", false},
    {SPW_GLOB_PATH, "torch/**.py", "/v/torch/optim/x/adam.py", true},
    {SPW_GLOB_PATH, "torch/?ptim/*", "/v/torch/optim/adam.py", true},
    {SPW_GLOB_PATH, "torch?optim/*", "/v/torch/optim/adam.py", false},
    {SPW_GLOB_PATH, "torch[!x]optim/*", "/v/torch/optim/adam.py", false},
    {SPW_GLOB_PATH, "/home/*/train.py", "/home/u/train.py", true},
    {SPW_GLOB_PATH, "/home/*/train.py", "/mnt/home/u/train.py", false},
    {SPW_GLOB_PATH, "*a", "x/a", true},
    {SPW_GLOB_PATH, "*.py", "x.c/y.py", true},
    {SPW_GLOB_SYMBOL, "b", ":::b", true},
    {SPW_GLOB_SYMBOL, "[!:]b", "a:::ab", true},
    {SPW_GLOB_DOTTED, "[!.]", "..a", true},
    {SPW_GLOB_DOTTED, "forward", "GPT2.forward", true},
    {SPW_GLOB_DOTTED, "forward", "forward", true},
    {SPW_GLOB_DOTTED, "forward", "f.<locals>.forward", true},
    {SPW_GLOB_DOTTED, "GPT2.forward", "forward", false},
    {SPW_GLOB_DOTTED, "*Norm.forward", "LlamaRMSNorm.forward", true},
    {SPW_GLOB_DOTTED, "forward", "my_forward", false},
    {SPW_GLOB_SYMBOL, "AddmmBackward0::apply",
     "torch::autograd::generated::AddmmBackward0::apply(std::vector<at::Tensor, "
     "std::allocator<at::Tensor> >&&)",
     true},
    {SPW_GLOB_SYMBOL, "AddmmBackward0::apply",
     "torch::autograd::generated::SparseAddmmBackward0::apply(int)", false},
    {SPW_GLOB_SYMBOL, "AddmmBackward0::apply",
     "torch::autograd::generated::AddmmBackward0::apply_with_saved(int)", false},
    {SPW_GLOB_SYMBOL, "at::native::empty_cuda",
     "at::native::empty_cuda(c10::ArrayRef<long>, std::optional<c10::Device>)", true},
    {SPW_GLOB_SYMBOL, "f", "(anonymous namespace)::f(void (*)(int))", true},
    {SPW_GLOB_SYMBOL, "operator()", "a::{lambda(int)#1}::operator()(int) const", true},
    {SPW_GLOB_SYMBOL, "{lambda(int)#1}", "a::{lambda(int)#1}::operator()(int) const", false},
    {SPW_GLOB_SYMBOL, "g", "f<&g()>", false},
    {SPW_GLOB_SYMBOL, "f(int)", "a::f(int)", true},
    {SPW_GLOB_SYMBOL, "cudaMalloc", "cudaMalloc", true},
    {SPW_GLOB_SYMBOL, "x", "a:x", false},
    {SPW_GLOB_SYMBOL, "x", ")", false},
    {SPW_GLOB_SYMBOL, "x", "x(", false},
};

static void test_matching(void **state)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        if (match(rows[i].kind, rows[i].pattern, rows[i].name) != rows[i].matches) {
            fail_msg("%s against %s: expected %d", rows[i].pattern, rows[i].name, rows[i].matches);
        }
    }
}

static void test_an_unknown_name_never_matches(void **state)
{
    assert_false(match(SPW_GLOB_PLAIN, "*", NULL));
}

static void test_bad_patterns(void **state)
{
    static const struct {
        const char *pattern;
        const char *problem;
    } bad[] = {
        {"", "it is empty"},
        {"a[", "a [ without its ]"},
        {"[]", "a [ without its ]"},
        {"[!]", "a [ without its ]"},
        {"[abc", "a [ without its ]"},
        {"[a\\", "it ends in a backslash"},
        {"[a-\\", "it ends in a backslash"},
        {"x\\", "it ends in a backslash"},
        {"[z-a]", "a set whose range runs backwards"},
    };
    struct spw_glob_token tokens[SPW_GLOB_MAX];
    char long_pattern[SPW_GLOB_MAX + 2];

    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        const char *problem = NULL;

        assert_int_equal(spw_policy_glob_compile(bad[i].pattern, tokens, &problem), 0);
        assert_string_equal(problem, bad[i].problem);
    }
    memset(long_pattern, 'x', sizeof(long_pattern));
    long_pattern[SPW_GLOB_MAX + 1] = '\0';
    assert_int_equal(spw_policy_glob_compile(long_pattern, tokens, &(const char *){NULL}), 0);
    long_pattern[SPW_GLOB_MAX] = '\0';
    assert_int_equal(spw_policy_glob_compile(long_pattern, tokens, &(const char *){NULL}),
                     SPW_GLOB_MAX);
}

/* A pattern of many runs against a name that almost matches takes no exponential time: this would
 * not end. */
static void test_linear_time(void **state)
{
    char pattern[SPW_GLOB_MAX + 1];
    char name[4096];

    for (size_t i = 0; i + 2 < sizeof(pattern); i += 2) {
        memcpy(pattern + i, "*a", 2);
    }
    pattern[sizeof(pattern) - 3] = 'b';
    pattern[sizeof(pattern) - 2] = '\0';
    memset(name, 'a', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    assert_false(match(SPW_GLOB_PLAIN, pattern, name));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_matching),
        cmocka_unit_test(test_an_unknown_name_never_matches),
        cmocka_unit_test(test_bad_patterns),
        cmocka_unit_test(test_linear_time),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
