/* The purpose of memory: roles of call sites, and lives of blocks. */
#include "cli/recording/category.h"

#include "callsite/text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

/* ---- roles ---- */

#define TORCH "python:/venv/site-packages/torch/"
#define CALL  TORCH "nn/modules/module.py:_call_impl:1790; "

static void roles(void **unused)
{
    static const struct {
        const char *site;
        enum spw_cli_role role;
    } rows[] = {
        {"size:1", SPW_CLI_ROLE_NONE},
        {TORCH "nn/modules/module.py:<lambda>:1097; " TORCH "nn/modules/module.py:_apply:934; "
               "python:train.py:train:105",
         SPW_CLI_ROLE_SETUP},
        {TORCH "nn/modules/linear.py:__init__:98; python:train.py:__init__:9", SPW_CLI_ROLE_SETUP},
        {TORCH "nn/modules/linear.py:forward:134; " CALL "python:train.py:train:114",
         SPW_CLI_ROLE_FORWARD},
        /* A class whose making runs everything. */
        {"python:a.py:f:1; python:a.py:g:1; python:a.py:h:1; python:a.py:i:1; "
         "python:a.py:__init__:1",
         SPW_CLI_ROLE_OTHER},
        {"python:train.py:train:112; native:libtorch_cpu.so:at\\:\\:_ops\\:\\:_to_copy\\:\\:call; "
         "native:libtorch_cpu.so:at\\:\\:_ops\\:\\:to_dtype_layout\\:\\:call(at)",
         SPW_CLI_ROLE_INPUT},
        /* To another type, on the same device. */
        {"python:train.py:train:112; native:libtorch_cpu.so:at\\:\\:_ops\\:\\:_to_copy\\:\\:call; "
         "native:libtorch_cpu.so:at\\:\\:_ops\\:\\:to_dtype\\:\\:call(at)",
         SPW_CLI_ROLE_OTHER},
        {"python:train.py:train:112; native:libtorch_cpu.so:at\\:\\:_ops\\:\\:mul\\:\\:call(at)",
         SPW_CLI_ROLE_OTHER},
        {"thread:pt_autograd_0; " CALL "python:train.py:train:1", SPW_CLI_ROLE_BACKWARD},
        {"thread:main; node:AddmmBackward0; python:train.py:train:1", SPW_CLI_ROLE_BACKWARD},
        {TORCH "optim/adam.py:_multi_tensor_adam:791; " TORCH "optim/adam.py:step:1; "
               "python:train.py:train:117",
         SPW_CLI_ROLE_OPTIMIZER},
        {TORCH "optim/adam.py:_init_group:178; " TORCH "optim/adam.py:step:1; "
               "python:train.py:train:117",
         SPW_CLI_ROLE_STATE},
        /* The program's own optimizer, and a closure that an optimizer calls. */
        {"python:lion.py:step:9; " TORCH "optim/optimizer.py:wrapper:1; python:train.py:train:1",
         SPW_CLI_ROLE_OPTIMIZER},
        {"python:train.py:closure:9; " TORCH "optim/lbfgs.py:step:1; python:train.py:train:1",
         SPW_CLI_ROLE_OTHER},
        {"python:train.py:train:1; native:/usr/lib/libcublas.so.13:cublasCreate_v2",
         SPW_CLI_ROLE_WORKSPACE},
        {CALL "native:libtorch_cuda.so:at\\:\\:cuda\\:\\:getCUDABlasLtWorkspace()",
         SPW_CLI_ROLE_WORKSPACE},
        {"thread:pt_autograd_0; native:libc10.so:x; native:libtorch.so:c10d\\:\\:Reducer\\:\\:f()",
         SPW_CLI_ROLE_COMMUNICATION},
        {TORCH "distributed/fsdp/_flat_param.py:unshard:1; python:train.py:train:1",
         SPW_CLI_ROLE_SHARD},
    };
    static struct spw_callsite_text text;
    char complaint[200];

    (void)unused;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        assert_true(spw_callsite_parse(rows[i].site, &text, complaint, sizeof(complaint)));
        if (spw_cli_role_of(&text.site) != rows[i].role) {
            fail_msg("row %zu: %s", i, rows[i].site);
        }
    }
}

/* ---- lives ---- */

enum { MAIN, AUTOGRAD, LOADER };

/* Lives that the tests write down: the number of the next event, and what was born. */
struct story {
    struct spw_cli_lives lives;
    uint64_t event;
};

static uint64_t born_on(struct story *story, enum spw_cli_role role, uint32_t thread)
{
    const struct spw_cli_maker maker = {
        .role = role, .autograd = thread == AUTOGRAD, .loop = thread == MAIN};

    spw_cli_lives_born(&story->lives, ++story->event, thread, &maker);
    return story->event;
}

static uint64_t born(struct story *story, enum spw_cli_role role)
{
    return born_on(story, role, role == SPW_CLI_ROLE_BACKWARD ? AUTOGRAD : MAIN);
}

static void died(struct story *story, uint64_t block, uint32_t thread)
{
    story->event++;
    spw_cli_lives_died(&story->lives, block, thread);
}

static void check(const struct story *story, uint64_t block, enum spw_cli_category category)
{
    assert_string_equal(spw_cli_category_key(spw_cli_lives_category(&story->lives, block)),
                        spw_cli_category_key(category));
}

/* The blocks of a step of training. */
struct step {
    uint64_t input, temporary, activation, of_backward, gradient, of_optimizer, state, log;
};

static struct step train(struct story *story, bool first)
{
    struct step step = {.input = born(story, SPW_CLI_ROLE_INPUT)};

    step.temporary = born(story, SPW_CLI_ROLE_FORWARD);
    step.activation = born(story, SPW_CLI_ROLE_FORWARD);
    died(story, step.temporary, MAIN);
    step.log = born(story, SPW_CLI_ROLE_OTHER);
    step.gradient = born(story, SPW_CLI_ROLE_BACKWARD);
    step.of_backward = born(story, SPW_CLI_ROLE_BACKWARD);
    died(story, step.activation, AUTOGRAD);
    died(story, step.of_backward, AUTOGRAD);
    if (first) {
        step.state = born(story, SPW_CLI_ROLE_STATE);
    }
    step.of_optimizer = born(story, SPW_CLI_ROLE_OPTIMIZER);
    died(story, step.of_optimizer, MAIN);
    died(story, step.gradient, MAIN);
    return step;
}

static void training(void **unused)
{
    struct story story = {0};
    uint64_t weight = born(&story, SPW_CLI_ROLE_SETUP), loading = born(&story, SPW_CLI_ROLE_SETUP);
    uint64_t raw = born(&story, SPW_CLI_ROLE_OTHER), scratch, strange;
    struct step steps[3];
    const struct spw_cli_ends *ends;
    const char *kind;

    (void)unused;
    died(&story, loading, MAIN);
    scratch = born(&story, SPW_CLI_ROLE_WORKSPACE);
    strange = born(&story, SPW_CLI_ROLE_NONE);
    for (int i = 0; i < 3; i++) {
        steps[i] = train(&story, i == 0);
    }
    for (int i = 0; i < 3; i++) {
        died(&story, steps[i].input, MAIN);
    }
    spw_cli_lives_end(&story.lives);
    check(&story, weight, SPW_CLI_WEIGHTS);
    check(&story, loading, SPW_CLI_TEMPORARIES);
    check(&story, raw, SPW_CLI_UNKNOWN);
    check(&story, strange, SPW_CLI_UNKNOWN);
    check(&story, scratch, SPW_CLI_WORKSPACES);
    check(&story, steps[0].state, SPW_CLI_OPTIMIZER_STATE);
    for (int i = 0; i < 3; i++) {
        check(&story, steps[i].input, SPW_CLI_INPUTS);
        check(&story, steps[i].temporary, SPW_CLI_TEMPORARIES);
        check(&story, steps[i].activation, SPW_CLI_ACTIVATIONS);
        check(&story, steps[i].gradient, SPW_CLI_GRADIENTS);
        check(&story, steps[i].of_backward, SPW_CLI_TEMPORARIES);
        check(&story, steps[i].of_optimizer, SPW_CLI_TEMPORARIES);
    }
    check(&story, steps[1].log, SPW_CLI_ACTIVATIONS);
    ends = spw_cli_lives_steps(&story.lives, &kind);
    assert_string_equal(kind, "optimizer steps");
    assert_int_equal(ends->count, 2); /* nothing follows the third */
    assert_int_equal(ends->events[0], steps[1].input);
    assert_int_equal(ends->events[1], steps[2].input);
    spw_cli_lives_fini(&story.lives);
}

/* An optimizer that allocates nothing: its gradients are freed before anything else is made. */
static void plain_descent(void **unused)
{
    struct story story = {0};
    uint64_t gradient = born(&story, SPW_CLI_ROLE_BACKWARD), later, momentum;
    const struct spw_cli_ends *ends;
    const char *kind;

    (void)unused;
    died(&story, gradient, MAIN);
    (void)born(&story, SPW_CLI_ROLE_INPUT);
    /* Freed by the thread of the loop, but in the midst of a pass: a hook of the program. */
    later = born(&story, SPW_CLI_ROLE_BACKWARD);
    died(&story, later, MAIN);
    (void)born(&story, SPW_CLI_ROLE_BACKWARD);
    momentum = born(&story, SPW_CLI_ROLE_OPTIMIZER);
    (void)born(&story, SPW_CLI_ROLE_INPUT);
    spw_cli_lives_end(&story.lives);
    check(&story, gradient, SPW_CLI_GRADIENTS);
    check(&story, later, SPW_CLI_TEMPORARIES);
    check(&story, momentum, SPW_CLI_OPTIMIZER_STATE);
    ends = spw_cli_lives_steps(&story.lives, &kind);
    assert_string_equal(kind, "backward passes");
    assert_int_equal(ends->count, 2);
    spw_cli_lives_fini(&story.lives);
}

/* Other threads do not end a pass, and marks of the program come before what is found. */
static void threads_and_marks(void **unused)
{
    struct story story = {0};
    const struct spw_cli_ends *ends;
    uint64_t temporary;
    const char *kind;

    (void)unused;
    temporary = born(&story, SPW_CLI_ROLE_BACKWARD);
    (void)born_on(&story, SPW_CLI_ROLE_INPUT, LOADER);
    died(&story, temporary, AUTOGRAD);
    spw_cli_lives_marked(&story.lives, ++story.event);
    spw_cli_lives_end(&story.lives);
    check(&story, temporary, SPW_CLI_TEMPORARIES);
    ends = spw_cli_lives_steps(&story.lives, &kind);
    assert_string_equal(kind, "marked steps");
    assert_int_equal(ends->count, 1);
    spw_cli_lives_fini(&story.lives);
}

static void inference(void **unused)
{
    struct story story = {0};
    uint64_t weight = born(&story, SPW_CLI_ROLE_SETUP);
    uint64_t kept = born(&story, SPW_CLI_ROLE_FORWARD), freed = born(&story, SPW_CLI_ROLE_FORWARD);

    (void)unused;
    died(&story, weight, MAIN);
    died(&story, freed, MAIN);
    died(&story, freed, MAIN); /* twice, in a file from anywhere */
    died(&story, UINT64_MAX, MAIN);
    spw_cli_lives_end(&story.lives);
    check(&story, weight, SPW_CLI_WEIGHTS);
    check(&story, kept, SPW_CLI_ACTIVATIONS);
    check(&story, freed, SPW_CLI_ACTIVATIONS);
    check(&story, UINT64_MAX, SPW_CLI_UNKNOWN);
    spw_cli_lives_fini(&story.lives);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(roles),         cmocka_unit_test(training),
        cmocka_unit_test(plain_descent), cmocka_unit_test(threads_and_marks),
        cmocka_unit_test(inference),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
