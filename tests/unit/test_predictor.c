/* The predictor: periods, small differences, layers, block links, marked steps. */
#include "migrate/learn/predictor.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

enum { LAYERS = 64, WEIGHTS = LAYERS };

/* A model: weights that stay, activations that come and go, layers that are all alike. */
struct model {
    struct spw_predictor predictor;
    uint32_t weights[WEIGHTS], activations[LAYERS];
    uint32_t samples; /* read by evaluations only */
};

static void begin(struct model *model)
{
    assert_true(spw_migrate_predictor_init(&model->predictor));
    for (int i = 0; i < WEIGHTS; i++) {
        model->weights[i] = spw_migrate_predictor_add_block(&model->predictor, 4096, 1, 0);
    }
    model->samples = spw_migrate_predictor_add_block(&model->predictor, 4096, 5, 0);
}

static void forward(struct model *model, int layer)
{
    model->activations[layer] = spw_migrate_predictor_alloc(&model->predictor, 1 << 20, 2);
    spw_migrate_predictor_use(&model->predictor, model->weights[layer]);
    spw_migrate_predictor_use(&model->predictor, model->activations[layer]);
}

static void backward(struct model *model, int layer)
{
    spw_migrate_predictor_use(&model->predictor, model->activations[layer]);
    spw_migrate_predictor_use(&model->predictor, model->weights[layer]);
    spw_migrate_predictor_free(&model->predictor, model->activations[layer]);
}

/* Consecutive uses of one block are one event, as at the turn of a step. */
enum { EVENTS = 6 * LAYERS - 1 };

static void step(struct model *model, int noise)
{
    for (int i = 0; i < LAYERS; i++) {
        forward(model, i);
        if (i == noise) {
            uint32_t extra = spw_migrate_predictor_alloc(&model->predictor, 12345, 9);

            spw_migrate_predictor_free(&model->predictor, extra);
        }
    }
    for (int i = LAYERS - 1; i >= 0; i--) {
        backward(model, i);
    }
}

/* Events from the repetition that is followed to now; 0 while none is. */
static uint64_t followed_distance(const struct model *model)
{
    const struct spw_predictor *predictor = &model->predictor;

    return predictor->following ? predictor->count - predictor->cursor : 0;
}

/* Reads every weight; happens between steps. */
static void check(struct model *model)
{
    for (int i = 0; i < WEIGHTS; i++) {
        spw_migrate_predictor_use(&model->predictor, model->weights[i]);
    }
}

/* A forward pass that keeps nothing. */
static void evaluate(struct model *model)
{
    uint32_t input = spw_migrate_predictor_alloc(&model->predictor, 1 << 18, 3);

    spw_migrate_predictor_use(&model->predictor, model->samples);
    for (int i = 0; i < LAYERS; i++) {
        uint32_t output = spw_migrate_predictor_alloc(&model->predictor, 1 << 18, 4);

        spw_migrate_predictor_use(&model->predictor, input);
        spw_migrate_predictor_use(&model->predictor, model->weights[i]);
        spw_migrate_predictor_use(&model->predictor, output);
        spw_migrate_predictor_free(&model->predictor, input);
        input = output;
    }
    spw_migrate_predictor_free(&model->predictor, input);
}

static void test_nothing_is_known_at_first(void **state)
{
    struct model model;

    begin(&model);
    forward(&model, 0);
    assert_int_equal(spw_migrate_predictor_period(&model.predictor), 0);
    spw_migrate_predictor_forecast(&model.predictor, NULL, NULL);
    assert_int_equal(spw_migrate_predictor_next_use(&model.predictor, model.weights[0]), SPW_NEVER);
    spw_migrate_predictor_fini(&model.predictor);
}

static void test_period_in_spite_of_layers(void **state)
{
    struct model model;

    begin(&model);
    for (int i = 0; i < 4; i++) {
        step(&model, -1);
    }
    assert_int_equal(spw_migrate_predictor_period(&model.predictor), EVENTS);
    spw_migrate_predictor_forecast(&model.predictor, NULL, NULL);
    for (uint32_t i = 0; i < WEIGHTS; i++) {
        assert_int_equal(spw_migrate_predictor_next_use(&model.predictor, model.weights[i]),
                         3 * i + 1);
    }
    spw_migrate_predictor_fini(&model.predictor);
}

/* In the middle of a step, its own blocks are predicted through the links to their predecessors. */
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
    spw_migrate_predictor_forecast(&model.predictor, NULL, NULL);
    for (int i = 0; i < LAYERS / 2; i++) {
        uint32_t until = 3 * (LAYERS / 2) + 3 * (uint32_t)(LAYERS - 1 - i) - 1;

        assert_int_equal(spw_migrate_predictor_next_use(&model.predictor, model.activations[i]),
                         until);
        assert_int_equal(spw_migrate_predictor_next_use(&model.predictor, model.weights[i]),
                         until + 1);
        assert_in_range(spw_migrate_predictor_next_free(&model.predictor, model.activations[i]),
                        until + 1, until + 3);
        assert_int_equal(spw_migrate_predictor_next_free(&model.predictor, model.weights[i]),
                         SPW_NEVER);
    }
    spw_migrate_predictor_fini(&model.predictor);
}

struct sum {
    int64_t bytes, most;
    uint32_t last;
};

static void add(void *cookie, const struct spw_prediction *prediction)
{
    struct sum *sum = cookie;

    assert_true(prediction->distance >= sum->last);
    sum->last = prediction->distance;
    sum->bytes += (prediction->kind == SPW_PREDICTOR_ALLOC ? 1 : -1) * (int64_t)prediction->bytes;
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
    spw_migrate_predictor_forecast(&model.predictor, add, &sum);
    assert_int_equal(sum.bytes, 0);
    assert_int_equal(sum.most, (int64_t)LAYERS << 20);
    spw_migrate_predictor_fini(&model.predictor);
}

static void test_small_differences(void **state)
{
    struct model model;
    uint64_t misses;

    begin(&model);
    for (int i = 0; i < 4; i++) {
        step(&model, -1);
    }
    misses = model.predictor.misses;
    step(&model, 3);
    assert_int_equal(model.predictor.misses - misses, 2);
    assert_true(spw_migrate_predictor_period(&model.predictor) > 0);
    spw_migrate_predictor_forecast(&model.predictor, NULL, NULL);
    assert_int_equal(spw_migrate_predictor_next_use(&model.predictor, model.weights[0]), 1);
    /* Expected events that are missing are skipped. */
    step(&model, -1);
    assert_true(spw_migrate_predictor_period(&model.predictor) > 0);
    spw_migrate_predictor_forecast(&model.predictor, NULL, NULL);
    assert_int_equal(spw_migrate_predictor_next_use(&model.predictor, model.weights[1]), 4);
    spw_migrate_predictor_fini(&model.predictor);
}

/* Random allocations are not predicted, and the steps after them are learned anew. */
static void test_learns_anew_after_random_events(void **state)
{
    struct model model;

    begin(&model);
    for (int i = 0; i < 4; i++) {
        step(&model, -1);
    }
    for (int i = 0; i < 100; i++) {
        spw_migrate_predictor_free(
            &model.predictor,
            spw_migrate_predictor_alloc(&model.predictor, 100 + (uint64_t)rand() % 1000, 77));
    }
    assert_int_equal(spw_migrate_predictor_period(&model.predictor), 0);
    for (int i = 0; i < 3; i++) {
        step(&model, -1);
    }
    assert_true(spw_migrate_predictor_period(&model.predictor) > 0);
    spw_migrate_predictor_fini(&model.predictor);
}

static void assert_step_is_known(struct model *model)
{
    assert_int_equal(spw_migrate_predictor_period(&model->predictor), EVENTS);
    spw_migrate_predictor_forecast(&model->predictor, NULL, NULL);
    for (uint32_t i = 0; i < WEIGHTS; i++) {
        assert_int_equal(spw_migrate_predictor_next_use(&model->predictor, model->weights[i]),
                         3 * i + 1);
    }
}

/* The events before the steps recur between them, so the longest match is with the first steps. The
 * period is a step all the same, and soon the last step is followed. */
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
                assert_int_equal(followed_distance(&model), EVENTS);
            }
        }
    }
    spw_migrate_predictor_fini(&model.predictor);
}

/* The evaluation was not there before. */
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
    spw_migrate_predictor_fini(&model.predictor);
}

/* An evaluation at every third step is predicted, and the period is still one step. */
static void test_an_evaluation_every_third_step(void **state)
{
    uint64_t misses = 0, round = 0;
    struct model model;

    begin(&model);
    for (int i = 0; i < 10; i++) {
        uint64_t begun = model.predictor.count;

        for (int k = 0; k < 3; k++) {
            step(&model, -1);
            if (i >= 4) {
                assert_int_equal(spw_migrate_predictor_period(&model.predictor), EVENTS);
                assert_int_equal(followed_distance(&model), round);
                spw_migrate_predictor_forecast(&model.predictor, NULL, NULL);
                assert_int_equal(spw_migrate_predictor_next_use(&model.predictor, model.samples),
                                 k == 2 ? 1 : SPW_NEVER);
            }
        }
        if (i >= 4) {
            assert_int_equal(spw_migrate_predictor_next_use(&model.predictor, model.weights[0]), 4);
            assert_int_equal(spw_migrate_predictor_next_use(&model.predictor, model.weights[1]),
                             4 + 5);
            assert_int_equal(model.predictor.misses, misses);
        }
        evaluate(&model);
        misses = model.predictor.misses;
        round = model.predictor.count - begun;
    }
    spw_migrate_predictor_fini(&model.predictor);
}

/* Many layers in a row that are alike are no steps, since each has blocks of its own. */
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
            assert_int_equal(spw_migrate_predictor_period(&model.predictor), EVENTS);
        }
        for (int layer = LAYERS - 1; layer >= 0; layer--) {
            backward(&model, layer);
            assert_int_equal(spw_migrate_predictor_period(&model.predictor), EVENTS);
        }
    }
    spw_migrate_predictor_fini(&model.predictor);
}

/* A loop inside a step is no step, since it uses little of the memory. */
static void test_a_loop_in_a_step_is_none(void **state)
{
    enum { SCRATCH = 4, ROUNDS = 40 };
    uint32_t scratch[SCRATCH];
    struct model model;

    begin(&model);
    for (uint32_t i = 0; i < SCRATCH; i++) {
        scratch[i] = spw_migrate_predictor_add_block(&model.predictor, 512, 10 + i, 0);
    }
    for (int i = 0; i < 6; i++) {
        step(&model, -1);
        for (int k = 0; k < SCRATCH * ROUNDS; k++) {
            spw_migrate_predictor_use(&model.predictor, scratch[k % SCRATCH]);
            if (i >= 3) {
                assert_int_equal(spw_migrate_predictor_period(&model.predictor),
                                 EVENTS + SCRATCH * ROUNDS);
            }
        }
    }
    spw_migrate_predictor_fini(&model.predictor);
}

/* ---- marked steps ---- */

/* Every step has another shape: the sizes of its activations occur in no other. */
static void step_of_new_shape(struct model *model, bool marked)
{
    static uint64_t shape;
    uint64_t bytes = (1 << 20) + 512 * ++shape;

    if (marked) {
        spw_migrate_predictor_mark_step(&model->predictor);
    }
    for (int i = 0; i < LAYERS; i++) {
        model->activations[i] = spw_migrate_predictor_alloc(&model->predictor, bytes, 2);
        spw_migrate_predictor_use(&model->predictor, model->weights[i]);
        spw_migrate_predictor_use(&model->predictor, model->activations[i]);
    }
    for (int i = LAYERS - 1; i >= 0; i--) {
        backward(model, i);
    }
}

/* Forecasts in the middle of a step, after the forward pass of half the layers. Returns for how
 * many of the other weights the next use is predicted exactly. */
static int exact_predictions(struct model *model, bool marked)
{
    int exact = 0;

    if (marked) {
        spw_migrate_predictor_mark_step(&model->predictor);
    }
    for (int i = 0; i < LAYERS / 2; i++) {
        forward(model, i);
    }
    spw_migrate_predictor_forecast(&model->predictor, NULL, NULL);
    for (int i = LAYERS / 2; i < LAYERS; i++) {
        exact += spw_migrate_predictor_next_use(&model->predictor, model->weights[i]) ==
                 3 * (uint32_t)(i - LAYERS / 2) + 1;
    }
    return exact;
}

/* Weights of different sizes, so that one layer is not taken for another. */
static void begin_with_distinct_weights(struct model *model)
{
    begin(model);
    for (int i = 0; i < WEIGHTS; i++) {
        model->weights[i] =
            spw_migrate_predictor_add_block(&model->predictor, 8192 + 512 * (uint64_t)i, 1, 0);
    }
}

static void test_marks_predict_dynamic_shapes(void **state)
{
    for (int marked = 0; marked < 2; marked++) {
        struct model model;

        begin_with_distinct_weights(&model);
        for (int i = 0; i < 6; i++) {
            step_of_new_shape(&model, marked);
        }
        assert_int_equal(spw_migrate_predictor_period(&model.predictor), marked ? EVENTS : 0);
        assert_int_equal(exact_predictions(&model, marked), marked ? LAYERS / 2 : 0);
        spw_migrate_predictor_fini(&model.predictor);
    }
}

/* Steps of two kinds in an irregular order are told apart by their first events, far fewer than a
 * match needs without marks; and the period is that of the kind. */
static void test_marks_tell_kinds_of_steps_apart(void **state)
{
    struct model model;
    uint64_t length = 0;

    begin_with_distinct_weights(&model);
    for (int i = 0; i < 12; i++) {
        bool evaluates = i == 3 || i == 5 || i == 6 || i == 10;
        uint64_t begun = model.predictor.count;

        spw_migrate_predictor_mark_step(&model.predictor);
        if (evaluates) {
            evaluate(&model);
            length = model.predictor.count - begun;
        } else {
            forward(&model, 0);
            if (i >= 4) {
                assert_int_equal(spw_migrate_predictor_period(&model.predictor), EVENTS);
                spw_migrate_predictor_forecast(&model.predictor, NULL, NULL);
                assert_int_equal(spw_migrate_predictor_next_use(&model.predictor, model.weights[1]),
                                 1);
            }
            for (int layer = 1; layer < LAYERS; layer++) {
                forward(&model, layer);
            }
            for (int layer = LAYERS - 1; layer >= 0; layer--) {
                backward(&model, layer);
            }
        }
    }
    assert_true(length < EVENTS);
    spw_migrate_predictor_fini(&model.predictor);
}

/* A step is taken to be of the kind that followed the last one's before, not of that one's. */
static void test_marks_know_what_follows(void **state)
{
    struct model model;

    begin_with_distinct_weights(&model);
    for (int i = 0; i < 12; i++) {
        spw_migrate_predictor_mark_step(&model.predictor);
        if (i >= 4) {
            spw_migrate_predictor_forecast(&model.predictor, NULL, NULL);
            assert_int_equal(spw_migrate_predictor_next_use(&model.predictor, model.weights[1]),
                             i % 2 == 0 ? 4 : 9);
        }
        if (i % 2 == 0) {
            step(&model, -1);
        } else {
            evaluate(&model);
        }
    }
    spw_migrate_predictor_fini(&model.predictor);
}

/* An evaluation that is not marked ends with the next mark. */
static void test_marks_return_after_an_evaluation(void **state)
{
    struct model model;

    begin_with_distinct_weights(&model);
    for (int i = 0; i < 8; i++) {
        spw_migrate_predictor_mark_step(&model.predictor);
        spw_migrate_predictor_mark_step(&model.predictor); /* counts once */
        if (i > 2) {
            spw_migrate_predictor_forecast(&model.predictor, NULL, NULL);
            assert_int_equal(spw_migrate_predictor_next_use(&model.predictor, model.weights[1]), 4);
        }
        step(&model, -1);
        if (i % 3 == 2) {
            evaluate(&model);
        }
    }
    spw_migrate_predictor_fini(&model.predictor);
}

/* A program that marks a few steps only: the others are detected. */
static void test_steps_are_detected_after_the_last_mark(void **state)
{
    struct model model;

    begin_with_distinct_weights(&model);
    for (int i = 0; i < 3; i++) {
        spw_migrate_predictor_mark_step(&model.predictor);
        evaluate(&model);
    }
    for (int i = 0; i < 9; i++) {
        step(&model, -1);
    }
    assert_int_equal(spw_migrate_predictor_period(&model.predictor), EVENTS);
    spw_migrate_predictor_forecast(&model.predictor, NULL, NULL);
    assert_int_equal(spw_migrate_predictor_next_use(&model.predictor, model.weights[1]), 4);
    spw_migrate_predictor_fini(&model.predictor);
}

/* Far more marks than are kept, and steps longer than the history. */
static void test_marks_for_long(void **state)
{
    struct model model;

    begin(&model);
    for (int i = 0; i < 4 * SPW_PREDICTOR_MARKS; i++) {
        spw_migrate_predictor_mark_step(&model.predictor);
        step(&model, -1);
    }
    assert_int_equal(spw_migrate_predictor_period(&model.predictor), EVENTS);
    for (int i = 0; i < 2; i++) {
        spw_migrate_predictor_mark_step(&model.predictor);
        for (int k = 0; k < SPW_PREDICTOR_EVENTS / EVENTS + 2; k++) {
            step(&model, -1);
        }
        spw_migrate_predictor_forecast(&model.predictor, NULL, NULL);
    }
    spw_migrate_predictor_fini(&model.predictor);
}

/* Far more events and blocks than are kept. */
static void test_for_long(void **state)
{
    struct model model;

    begin(&model);
    for (int i = 0; i < 3 * SPW_PREDICTOR_EVENTS / EVENTS; i++) {
        step(&model, -1);
    }
    assert_int_equal(spw_migrate_predictor_period(&model.predictor), EVENTS);
    assert_true(model.predictor.block_count < SPW_PREDICTOR_BLOCKS);
    assert_true(model.predictor.misses < 100);
    spw_migrate_predictor_fini(&model.predictor);
}

static void test_too_many_blocks(void **state)
{
    struct spw_predictor predictor;

    assert_true(spw_migrate_predictor_init(&predictor));
    for (uint32_t i = 1; i < SPW_PREDICTOR_BLOCKS; i++) {
        assert_int_not_equal(spw_migrate_predictor_alloc(&predictor, i, 0), 0);
    }
    assert_int_equal(spw_migrate_predictor_alloc(&predictor, 1, 0), 0);
    spw_migrate_predictor_fini(&predictor);
}

/* The number of a block that ended is given to another one when the history no longer has its end,
 * be that the very first event. */
static void test_numbers_come_again(void **state)
{
    struct spw_predictor predictor;
    uint32_t first, used[2];

    assert_true(spw_migrate_predictor_init(&predictor));
    first = spw_migrate_predictor_add_block(&predictor, 4096, 1, 0);
    used[0] = spw_migrate_predictor_add_block(&predictor, 4096, 2, 0);
    used[1] = spw_migrate_predictor_add_block(&predictor, 4096, 3, 0);
    spw_migrate_predictor_free(&predictor, first);
    for (uint32_t i = 1; i < SPW_PREDICTOR_EVENTS; i++) {
        spw_migrate_predictor_use(&predictor, used[i % 2]);
    }
    assert_int_equal(spw_migrate_predictor_add_block(&predictor, 512, 3, 0), used[1] + 1);
    spw_migrate_predictor_use(&predictor, used[0]);
    assert_int_equal(spw_migrate_predictor_add_block(&predictor, 512, 3, 0), first);
    spw_migrate_predictor_fini(&predictor);
}

/* The number of an untracked block is free again at once, and its bytes count nowhere. */
/* A block that the first step allocates and all steps use, like the workspace of a library. It has
 * the size and the call site of others, so an allocation of the second step takes its place at
 * first. */
static void test_a_block_that_stays(void **state)
{
    for (int first = 0; first < LAYERS; first++) {
        struct model model;
        uint32_t workspace = 0;

        begin(&model);
        for (int i = 0; i < 4; i++) {
            for (int layer = 0; layer < LAYERS; layer++) {
                if (i == 0 && layer == first) {
                    workspace = spw_migrate_predictor_alloc(&model.predictor, 1 << 20, 2);
                }
                forward(&model, layer);
                if (workspace != 0) {
                    spw_migrate_predictor_use(&model.predictor, workspace);
                }
            }
            for (int layer = LAYERS - 1; layer >= 0; layer--) {
                backward(&model, layer);
            }
        }
        assert_true(spw_migrate_predictor_period(&model.predictor) > 0);
        spw_migrate_predictor_forecast(&model.predictor, NULL, NULL);
        assert_in_range(spw_migrate_predictor_next_use(&model.predictor, workspace), 1, 8);
        spw_migrate_predictor_fini(&model.predictor);
    }
    (void)state;
}

static void test_untracked_blocks(void **state)
{
    uint64_t live = 0;
    struct spw_predictor predictor;
    uint32_t last;

    assert_true(spw_migrate_predictor_init(&predictor));
    last = spw_migrate_predictor_add_untracked(&predictor, 4096, 7);
    assert_int_equal(last, 1);
    for (uint32_t i = 2; i < SPW_PREDICTOR_BLOCKS; i++) {
        assert_int_not_equal(spw_migrate_predictor_add_block(&predictor, i, 0, 0), 0);
        live += i;
    }
    assert_int_equal(predictor.live_bytes, live);
    assert_int_equal(spw_migrate_predictor_add_untracked(&predictor, 4096, 7), 0);
    assert_false(predictor.blocks[0].untracked);
    for (int i = 0; i < 3; i++) {
        assert_true(predictor.blocks[last].untracked);
        spw_migrate_predictor_end_untracked(&predictor, last);
        assert_int_equal(spw_migrate_predictor_add_untracked(&predictor, 4096, 7), last);
        assert_int_equal(spw_migrate_predictor_add_untracked(&predictor, 4096, 7), 0);
    }
    spw_migrate_predictor_end_untracked(&predictor, last);
    assert_int_equal(spw_migrate_predictor_add_block(&predictor, 512, 0, 0), last);
    assert_false(predictor.blocks[last].untracked);
    assert_int_equal(predictor.live_bytes, live + 512);
    assert_int_equal(predictor.count, 0);
    spw_migrate_predictor_fini(&predictor);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_is_known_at_first),
        cmocka_unit_test(test_period_in_spite_of_layers),
        cmocka_unit_test(test_blocks_of_the_step),
        cmocka_unit_test(test_allocations_to_come),
        cmocka_unit_test(test_small_differences),
        cmocka_unit_test(test_learns_anew_after_random_events),
        cmocka_unit_test(test_steps_go_on_after_an_interruption),
        cmocka_unit_test(test_steps_go_on_after_an_evaluation),
        cmocka_unit_test(test_an_evaluation_every_third_step),
        cmocka_unit_test(test_layers_are_no_steps),
        cmocka_unit_test(test_a_loop_in_a_step_is_none),
        cmocka_unit_test(test_marks_predict_dynamic_shapes),
        cmocka_unit_test(test_marks_tell_kinds_of_steps_apart),
        cmocka_unit_test(test_marks_know_what_follows),
        cmocka_unit_test(test_marks_return_after_an_evaluation),
        cmocka_unit_test(test_steps_are_detected_after_the_last_mark),
        cmocka_unit_test(test_marks_for_long),
        cmocka_unit_test(test_for_long),
        cmocka_unit_test(test_too_many_blocks),
        cmocka_unit_test(test_numbers_come_again),
        cmocka_unit_test(test_a_block_that_stays),
        cmocka_unit_test(test_untracked_blocks),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
