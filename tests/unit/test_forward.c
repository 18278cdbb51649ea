/* The line of the forward pass for a node of the backward pass. */
#include "cli/recording/forward.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define TORCH "/venv/site-packages/torch/nn/functional.py"

static int start(void **unused)
{
    spw_cli_forward_clear();
    return 0;
}

/* Takes a site whose innermost frames are PyTorch's, and below them a line of the script. */
static void take(const char *symbol, const char *file, uint32_t line, const char *node)
{
    const struct spw_native_frame native[] = {{"libtorch_cpu.so", NULL},
                                              {"libtorch_cpu.so", symbol}};
    const struct spw_python_frame python[] = {{TORCH, "softmax", 2159}, {file, "forward", line}};
    const struct spw_callsite_facts facts = {
        .python = python,
        .python_count = file == NULL ? 0 : 2,
        .native = native,
        .native_count = 2,
        .node = node,
    };

    spw_cli_forward_take(&facts);
}

static void check(const char *node, const char *file, uint32_t line)
{
    const struct spw_python_frame *found = spw_cli_forward_line(node);

    if (file == NULL) {
        assert_null(found);
    } else {
        assert_non_null(found);
        assert_string_equal(found->file, file);
        assert_int_equal(found->line, line);
    }
}

#define SOFTMAX "at::_ops::_softmax::call(at::Tensor const&, long, bool)"

static void one_line(void **unused)
{
    check("SoftmaxBackward0", NULL, 0);
    take(SOFTMAX, "/home/me/train.py", 39, NULL);
    take(SOFTMAX, "/home/me/train.py", 39, NULL);
    take("at::_ops::_softmax::redispatch(c10::DispatchKeySet)", "/home/me/train.py", 39, NULL);
    check("SoftmaxBackward0", "/home/me/train.py", 39);
    check("SoftmaxBackward12", "/home/me/train.py", 39);
    check("LogSoftmaxBackward0", NULL, 0);
    check("SoftmaxBackwardX", NULL, 0);
    check("AddmmBackward0", NULL, 0);
}

static void several_lines(void **unused)
{
    take(SOFTMAX, "/home/me/train.py", 39, NULL);
    take(SOFTMAX, "/home/me/train.py", 40, NULL);
    check("SoftmaxBackward0", NULL, 0);
    take(SOFTMAX, "/home/me/train.py", 39, NULL);
    check("SoftmaxBackward0", NULL, 0);
}

/* A call from a thread without Python could be the forward pass of anything. */
static void no_line(void **unused)
{
    take(SOFTMAX, NULL, 0, NULL);
    take(SOFTMAX, "/home/me/train.py", 39, NULL);
    check("SoftmaxBackward0", NULL, 0);
}

static void calls_of_others(void **unused)
{
    take("at::_ops::_softmax_backward_data::call(at::Tensor const&)", "/a.py", 1, NULL);
    take("at::native::softmax(at::Tensor const&)", "/a.py", 2, NULL);
    take(SOFTMAX, NULL, 0, "SoftmaxBackward0"); /* the backward pass itself */
    check("SoftmaxBackward0", NULL, 0);
    take(SOFTMAX, "/home/torch/train.py", 3, NULL);
    check("SoftmaxBackward0", "/home/torch/train.py", 3);
}

/* A module that is computed again in the backward pass is a line like any other. */
static void computed_again(void **unused)
{
    take(SOFTMAX, "/home/me/train.py", 39, "CheckpointFunctionBackward");
    check("SoftmaxBackward0", "/home/me/train.py", 39);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(one_line, start),
        cmocka_unit_test_setup(several_lines, start),
        cmocka_unit_test_setup(no_line, start),
        cmocka_unit_test_setup(calls_of_others, start),
        cmocka_unit_test_setup(computed_again, start),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
