/* Learning the order of use: periods, small differences, layers, blocks by their place. */
#include "migrate/predictor.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

enum { LAYERS = 24, WEIGHTS = LAYERS };

/* A model: weights that stay, activations that come and go, in layers that are all alike. */
struct model {
    struct spw_predictor order;
    uint32_t weights[WEIGHTS], activations[LAYERS];
    uint32_t samples; /* used by evaluations only */
};

static void begin(struct model *model)
{
    assert_true(spw_migrate_predictor_init(&model->order));
    for (int i = 0; i < WEIGHTS; i++) {
        model->weights[i] = spw_migrate_predictor_adopt(&model->order, 4096, 1, 0);
    }
    model->samples = spw_migrate_predictor_adopt(&model->order, 4096, 5, 0);
}

static void forward(struct model *model, int layer)
{
    model->activations[layer] = spw_migrate_predictor_alloc(&model->order, 1 << 20, 2);
    spw_migrate_predictor_use(&model->order, model->weights[layer]);
    spw_migrate_predictor_use(&model->order, model->activations[layer]);
}

static void backward(struct model *model, int layer)
{
    spw_migrate_predictor_use(&model->order, model->activations[layer]);
    spw_migrate_predictor_use(&model->order, model->weights[layer]);
    spw_migrate_predictor_free(&model->order, model->activations[layer]);
}

/* Two uses of a block that follow one another are one event: so it is where the step turns. */
enum { EVENTS = 6 * LAYERS - 1 };

static void step(struct model *model, int noise)
{
    for (int i = 0; i < LAYERS; i++) {
        forward(model, i);
        if (i == noise) {
            uint32_t extra = spw_migrate_predictor_alloc(&model->order, 12345, 9);

            spw_migrate_predictor_free(&model->order, extra);
        }
    }
    for (int i = LAYERS - 1; i >= 0; i--) {
        backward(model, i);
    }
}

/* A step in the middle of which weights are read anew, twice in turn. Returns in how many of the
 * layers behind that another one is followed: nothing is as expected there. */
static int step_astray(struct model *model)
{
    int astray = 0;

    for (int i = 0; i < LAYERS; i++) {
        forward(model, i);
    }
    for (int i = LAYERS - 1; i >= 0; i--) {
        backward(model, i);
        for (int k = 0; k < 4 && i == LAYERS / 2; k++) {
            spw_migrate_predictor_use(&model->order, model->weights[i + k % 2]);
        }
        if (spw_migrate_predictor_course(&model->order).period < EVENTS / 2) {
            astray++;
            assert_int_equal(spw_migrate_predictor_course(&model->order).surprise,
                             model->order.count);
        }
    }
    return astray;
}

/* What comes between steps: every weight is read. */
static void check(struct model *model)
{
    for (int i = 0; i < WEIGHTS; i++) {
        spw_migrate_predictor_use(&model->order, model->weights[i]);
    }
}

/* Forward only, and nothing stays. */
static void evaluate(struct model *model)
{
    uint32_t input = spw_migrate_predictor_alloc(&model->order, 1 << 18, 3);

    spw_migrate_predictor_use(&model->order, model->samples);
    for (int i = 0; i < LAYERS; i++) {
        uint32_t output = spw_migrate_predictor_alloc(&model->order, 1 << 18, 4);

        spw_migrate_predictor_use(&model->order, input);
        spw_migrate_predictor_use(&model->order, model->weights[i]);
        spw_migrate_predictor_use(&model->order, output);
        spw_migrate_predictor_free(&model->order, input);
        input = output;
    }
    spw_migrate_predictor_free(&model->order, input);
}

static void test_nothing_is_known_at_first(void **state)
{
    struct model model;

    begin(&model);
    forward(&model, 0);
    assert_int_equal(spw_migrate_predictor_period(&model.order), 0);
    spw_migrate_predictor_foresee(&model.order, NULL, NULL);
    assert_int_equal(spw_migrate_predictor_next(&model.order, model.weights[0]),
                     SPW_PREDICTOR_NEVER);
    spw_migrate_predictor_fini(&model.order);
}

static void test_period_in_spite_of_layers(void **state)
{
    struct model model;

    begin(&model);
    for (int i = 0; i < 4; i++) {
        step(&model, -1);
    }
    assert_int_equal(spw_migrate_predictor_period(&model.order), EVENTS);
    spw_migrate_predictor_foresee(&model.order, NULL, NULL);
    for (uint32_t i = 0; i < WEIGHTS; i++) {
        assert_int_equal(spw_migrate_predictor_next(&model.order, model.weights[i]), 3 * i + 1);
    }
    spw_migrate_predictor_fini(&model.order);
}

/* In the middle of a step its own blocks are known by their place in it. */
static void test_blocks_of_the_step(void **state)
{
    struct model model;

    begin(&model);
    for (int i = 0; i < 4; i++) {
        step(&model, -1);
    }
    for (int i = 0; i < LAYERS / 2; i++) {
        forward(&model, i);
    }
    spw_migrate_predictor_foresee(&model.order, NULL, NULL);
    for (int i = 0; i < LAYERS / 2; i++) {
        uint32_t until = 3 * (LAYERS / 2) + 3 * (uint32_t)(LAYERS - 1 - i) - 1;

        assert_int_equal(spw_migrate_predictor_next(&model.order, model.activations[i]), until);
        assert_int_equal(spw_migrate_predictor_next(&model.order, model.weights[i]), until + 1);
        assert_in_range(spw_migrate_predictor_end(&model.order, model.activations[i]), until + 1,
                        until + 3);
        assert_int_equal(spw_migrate_predictor_end(&model.order, model.weights[i]),
                         SPW_PREDICTOR_NEVER);
    }
    spw_migrate_predictor_fini(&model.order);
}

struct sum {
    int64_t bytes, most;
    uint32_t last;
};

static void add(void *cookie, const struct spw_predictor_expected *expected)
{
    struct sum *sum = cookie;

    assert_true(expected->distance >= sum->last);
    sum->last = expected->distance;
    sum->bytes += (expected->kind == SPW_PREDICTOR_ALLOC ? 1 : -1) * (int64_t)expected->bytes;
    sum->most = sum->bytes > sum->most ? sum->bytes : sum->most;
}

static void test_allocations_to_come(void **state)
{
    struct model model;
    struct sum sum = {0};

    begin(&model);
    for (int i = 0; i < 4; i++) {
        step(&model, -1);
    }
    spw_migrate_predictor_foresee(&model.order, add, &sum);
    assert_int_equal(sum.bytes, 0);
    assert_int_equal(sum.most, (int64_t)LAYERS << 20);
    spw_migrate_predictor_fini(&model.order);
}

static void test_small_differences(void **state)
{
    struct model model;
    uint64_t misses;

    begin(&model);
    for (int i = 0; i < 4; i++) {
        step(&model, -1);
    }
    misses = model.order.misses;
    step(&model, 3);
    assert_int_equal(model.order.misses - misses, 2);
    assert_true(spw_migrate_predictor_period(&model.order) > 0);
    spw_migrate_predictor_foresee(&model.order, NULL, NULL);
    assert_int_equal(spw_migrate_predictor_next(&model.order, model.weights[0]), 1);
    /* What was there and is missing is skipped. */
    step(&model, -1);
    assert_true(spw_migrate_predictor_period(&model.order) > 0);
    spw_migrate_predictor_foresee(&model.order, NULL, NULL);
    assert_int_equal(spw_migrate_predictor_next(&model.order, model.weights[1]), 4);
    spw_migrate_predictor_fini(&model.order);
}

/* Something else altogether is not foreseen, and is learned anew. */
static void test_another_order(void **state)
{
    struct model model;

    begin(&model);
    for (int i = 0; i < 4; i++) {
        step(&model, -1);
    }
    for (int i = 0; i < 100; i++) {
        spw_migrate_predictor_free(
            &model.order,
            spw_migrate_predictor_alloc(&model.order, 100 + (uint64_t)rand() % 1000, 77));
    }
    assert_int_equal(spw_migrate_predictor_period(&model.order), 0);
    for (int i = 0; i < 3; i++) {
        step(&model, -1);
    }
    assert_true(spw_migrate_predictor_period(&model.order) > 0);
    spw_migrate_predictor_fini(&model.order);
}

/* Since when the same order is followed, and when something came that was not foreseen. */
static void test_course(void **state)
{
    struct spw_predictor_course course, later;
    struct model model;

    begin(&model);
    for (int i = 0; i < 6; i++) {
        step(&model, -1);
    }
    course = spw_migrate_predictor_course(&model.order);
    assert_int_equal(course.events, model.order.count);
    assert_int_equal(course.period, EVENTS);
    assert_true(course.since > EVENTS);
    assert_true(course.since < 3 * EVENTS);
    assert_true(course.surprise <= course.since);
    /* A small difference is a surprise, and no other order. */
    step(&model, LAYERS - 1);
    later = spw_migrate_predictor_course(&model.order);
    assert_int_equal(later.since, course.since);
    assert_true(later.surprise > course.events);
    /* Nor is it to follow the step before that one. */
    step(&model, -1);
    later = spw_migrate_predictor_course(&model.order);
    assert_true(later.period > 3 * EVENTS / 2);
    assert_int_equal(later.since, course.since);
    /* Nor to follow one that is further back, where the same difference was. */
    for (int i = 0; i < 6; i++) {
        step(&model, i < 5 ? -1 : LAYERS - 1);
    }
    later = spw_migrate_predictor_course(&model.order);
    assert_true(later.period > 5 * EVENTS);
    assert_int_equal(later.since, course.since);
    spw_migrate_predictor_renew(&model.order);
    assert_int_equal(spw_migrate_predictor_course(&model.order).since, later.events);
    /* Each half of a step is one of its own now. */
    for (int i = 0; i < 6; i++) {
        for (int layer = 0; layer < LAYERS; layer++) {
            forward(&model, layer);
            backward(&model, layer);
        }
    }
    course = spw_migrate_predictor_course(&model.order);
    assert_true(course.since > later.events);
    assert_true(course.period < EVENTS / 2);
    for (int i = 0; i < 100; i++) {
        spw_migrate_predictor_free(
            &model.order,
            spw_migrate_predictor_alloc(&model.order, 100 + (uint64_t)rand() % 1000, 77));
    }
    later = spw_migrate_predictor_course(&model.order);
    assert_int_equal(later.period, 0);
    /* What was not followed meanwhile is unknown, although the same goes on. */
    for (int i = 0; i < 6; i++) {
        step(&model, -1);
    }
    course = spw_migrate_predictor_course(&model.order);
    assert_int_equal(course.period, EVENTS);
    assert_true(course.since > later.events);
    spw_migrate_predictor_fini(&model.order);
}

/* What is new leads astray for a short while, as layers are all alike: that is no other order. */
static void test_astray(void **state)
{
    struct spw_predictor_course course = {0}, later;
    struct model model;

    begin(&model);
    for (int i = 0; i < 9; i++) {
        if (i == 6) {
            course = spw_migrate_predictor_course(&model.order);
            assert_true(step_astray(&model) > 0);
        } else {
            step(&model, -1);
        }
        evaluate(&model);
        check(&model);
    }
    later = spw_migrate_predictor_course(&model.order);
    assert_true(course.period > 3 * EVENTS / 2);
    assert_int_equal(later.since, course.since);
    assert_true(later.surprise > course.events);
    spw_migrate_predictor_fini(&model.order);
}

static void assert_step_is_known(struct model *model)
{
    assert_int_equal(spw_migrate_predictor_period(&model->order), EVENTS);
    spw_migrate_predictor_foresee(&model->order, NULL, NULL);
    for (uint32_t i = 0; i < WEIGHTS; i++) {
        assert_int_equal(spw_migrate_predictor_next(&model->order, model->weights[i]), 3 * i + 1);
    }
}

/* What came before the steps came after them too, so the first of them is most like the present:
 * the period is a step all the same, and soon the last step is followed. */
static void test_steps_go_on_after_an_interruption(void **state)
{
    struct model model;

    begin(&model);
    for (int phase = 0; phase < 2; phase++) {
        check(&model);
        check(&model);
        for (int i = 0; i < 12; i++) {
            step(&model, -1);
            if (i >= 2) {
                assert_step_is_known(&model);
                assert_int_equal(spw_migrate_predictor_course(&model.order).period, EVENTS);
            }
        }
    }
    spw_migrate_predictor_fini(&model.order);
}

/* After an evaluation that was not there before. */
static void test_steps_go_on_after_an_evaluation(void **state)
{
    struct model model;

    begin(&model);
    for (int i = 0; i < 8; i++) {
        step(&model, -1);
    }
    for (int i = 0; i < 3; i++) {
        evaluate(&model);
    }
    for (int i = 0; i < 8; i++) {
        step(&model, -1);
        if (i >= 2) {
            assert_step_is_known(&model);
        }
    }
    spw_migrate_predictor_fini(&model.order);
}

/* What comes every third step is foreseen, and a period is a step still. */
static void test_an_evaluation_every_third_step(void **state)
{
    uint64_t misses = 0, round = 0;
    struct model model;

    begin(&model);
    for (int i = 0; i < 10; i++) {
        uint64_t begun = model.order.count;

        for (int k = 0; k < 3; k++) {
            step(&model, -1);
            if (i >= 4) {
                assert_int_equal(spw_migrate_predictor_period(&model.order), EVENTS);
                assert_int_equal(spw_migrate_predictor_course(&model.order).period, round);
                spw_migrate_predictor_foresee(&model.order, NULL, NULL);
                assert_int_equal(spw_migrate_predictor_next(&model.order, model.samples),
                                 (2 - k) * EVENTS + 1);
            }
        }
        if (i >= 4) {
            assert_int_equal(spw_migrate_predictor_next(&model.order, model.weights[0]), 4);
            assert_int_equal(spw_migrate_predictor_next(&model.order, model.weights[1]), 4 + 5);
            assert_int_equal(model.order.misses, misses);
        }
        evaluate(&model);
        misses = model.order.misses;
        round = model.order.count - begun;
    }
    spw_migrate_predictor_fini(&model.order);
}

/* However many layers that are alike came one after the other: each has blocks of its own. */
static void test_layers_are_no_steps(void **state)
{
    struct model model;

    begin(&model);
    for (int i = 0; i < 3; i++) {
        step(&model, -1);
    }
    for (int i = 0; i < 3; i++) {
        for (int layer = 0; layer < LAYERS; layer++) {
            forward(&model, layer);
            assert_int_equal(spw_migrate_predictor_period(&model.order), EVENTS);
        }
        for (int layer = LAYERS - 1; layer >= 0; layer--) {
            backward(&model, layer);
            assert_int_equal(spw_migrate_predictor_period(&model.order), EVENTS);
        }
    }
    spw_migrate_predictor_fini(&model.order);
}

/* Nor is what comes many times in a step, and uses little of the memory. */
static void test_a_loop_in_a_step_is_none(void **state)
{
    enum { SCRATCH = 4, ROUNDS = 40 };
    uint32_t scratch[SCRATCH];
    struct model model;

    begin(&model);
    for (uint32_t i = 0; i < SCRATCH; i++) {
        scratch[i] = spw_migrate_predictor_adopt(&model.order, 512, 10 + i, 0);
    }
    for (int i = 0; i < 6; i++) {
        step(&model, -1);
        for (int k = 0; k < SCRATCH * ROUNDS; k++) {
            spw_migrate_predictor_use(&model.order, scratch[k % SCRATCH]);
            if (i >= 3) {
                assert_int_equal(spw_migrate_predictor_period(&model.order),
                                 EVENTS + SCRATCH * ROUNDS);
            }
        }
    }
    spw_migrate_predictor_fini(&model.order);
}

/* Far more events and blocks than are kept. */
static void test_for_long(void **state)
{
    struct model model;

    begin(&model);
    for (int i = 0; i < 3 * SPW_PREDICTOR_EVENTS / EVENTS; i++) {
        step(&model, -1);
    }
    assert_int_equal(spw_migrate_predictor_period(&model.order), EVENTS);
    assert_true(model.order.block_count < SPW_PREDICTOR_BLOCKS);
    assert_true(model.order.misses < 100);
    spw_migrate_predictor_fini(&model.order);
}

static void test_too_many_blocks(void **state)
{
    struct spw_predictor order;

    assert_true(spw_migrate_predictor_init(&order));
    for (uint32_t i = 1; i < SPW_PREDICTOR_BLOCKS; i++) {
        assert_int_not_equal(spw_migrate_predictor_alloc(&order, i, 0), 0);
    }
    assert_int_equal(spw_migrate_predictor_alloc(&order, 1, 0), 0);
    spw_migrate_predictor_fini(&order);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_is_known_at_first),
        cmocka_unit_test(test_period_in_spite_of_layers),
        cmocka_unit_test(test_blocks_of_the_step),
        cmocka_unit_test(test_allocations_to_come),
        cmocka_unit_test(test_small_differences),
        cmocka_unit_test(test_another_order),
        cmocka_unit_test(test_course),
        cmocka_unit_test(test_astray),
        cmocka_unit_test(test_steps_go_on_after_an_interruption),
        cmocka_unit_test(test_steps_go_on_after_an_evaluation),
        cmocka_unit_test(test_an_evaluation_every_third_step),
        cmocka_unit_test(test_layers_are_no_steps),
        cmocka_unit_test(test_a_loop_in_a_step_is_none),
        cmocka_unit_test(test_for_long),
        cmocka_unit_test(test_too_many_blocks),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
