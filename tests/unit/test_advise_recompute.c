/* Recomputed modules: the predicted peaks, compared with those of a program that recomputes, and
 * the choice of modules, compared with all choices that there are. */
#include "cli/advise/recompute.h"
#include "cli/advise/timeline.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "splitmix.h"

enum { PROGRAMS = 200, BLOCKS = 9, TENSORS = 6, STEPS = 2, MIB = 1 << 20 };

/* ---- programs ---- */

/* A block of a model: its pass allocates tensors one after the other. Saved ones stay until
 * backward, the others end at once. Then it allocates its output. If the next block `forgets` its
 * argument, which is this output, it is freed after the pass of the next block. */
struct block {
    uint64_t tensors[TENSORS], output, gradient, cost_ns;
    bool saved[TENSORS], forgets;
};

struct program {
    struct block blocks[BLOCKS];
    size_t count;
    uint64_t weights, loss;
};

static void make(struct program *program, bool equal)
{
    memset(program, 0, sizeof(*program));
    program->count = 1 + draw(BLOCKS);
    program->weights = draw(1000) * MIB;
    program->loss = draw(1000) * MIB;
    for (size_t i = 0; i < program->count; i++) {
        struct block *block = &program->blocks[i];

        for (int k = 0; k < TENSORS; k++) {
            block->tensors[k] = (1 + draw(100)) * MIB;
            block->saved[k] = k == 0 || draw(3) != 0;
        }
        block->output = (1 + draw(50)) * MIB;
        block->gradient = draw(100) * MIB;
        block->cost_ns = 1 + draw(1000000);
        block->forgets = i > 0 && draw(2) == 0;
        if (equal) {
            *block = program->blocks[0];
            block->forgets = i > 0;
        }
    }
}

/* ---- the program itself, with modules recomputed ---- */

struct meter {
    uint64_t live, peak;
};

static void take(struct meter *meter, uint64_t bytes)
{
    meter->live += bytes;
    meter->peak = meter->live > meter->peak ? meter->live : meter->peak;
}

/* Runs the pass of a block. Returns the bytes that it saves. */
static uint64_t run_pass(struct meter *meter, const struct block *block)
{
    uint64_t saved = 0;

    for (int k = 0; k < TENSORS; k++) {
        take(meter, block->tensors[k]);
        saved += block->saved[k] ? block->tensors[k] : 0;
        meter->live -= block->saved[k] ? 0 : block->tensors[k];
    }
    return saved;
}

static uint64_t run(const struct program *program, const bool *again)
{
    struct meter meter = {0};

    take(&meter, program->weights);
    for (int step = 0; step < STEPS; step++) {
        uint64_t saved[BLOCKS];

        for (size_t i = 0; i < program->count; i++) {
            saved[i] = run_pass(&meter, &program->blocks[i]);
            take(&meter, program->blocks[i].output);
            meter.live -= again[i] ? saved[i] : 0;
            meter.live -=
                program->blocks[i].forgets && !again[i] ? program->blocks[i - 1].output : 0;
        }
        take(&meter, program->loss);
        for (size_t i = program->count; i-- > 0;) {
            if (again[i]) {
                (void)run_pass(&meter, &program->blocks[i]);
            }
            take(&meter, program->blocks[i].gradient);
            meter.live -= saved[i] + program->blocks[i].gradient;
            if (i + 1 == program->count || !program->blocks[i + 1].forgets) {
                meter.live -= program->blocks[i].output;
            }
            meter.live -=
                program->blocks[i].forgets && again[i] ? program->blocks[i - 1].output : 0;
        }
        meter.live -= program->loss;
    }
    return meter.peak;
}

/* ---- its history, without recomputing ---- */

static void change(struct spw_cli_advise_history *history, uint32_t life, uint64_t bytes, bool ends)
{
    if (ends && life != SPW_CLI_ADVISE_NONE) {
        history->lives[life].last_change = history->change_count;
    }
    history->changes[history->change_count++] = (struct spw_cli_advise_change){
        .life = life, .bytes = ends ? -(int64_t)bytes : (int64_t)bytes};
}

static uint32_t begin(struct spw_cli_advise_history *history, uint64_t bytes, bool saved)
{
    uint32_t life = (uint32_t)history->life_count++;

    history->lives[life] = (struct spw_cli_advise_life){.pass = (uint32_t)history->pass_count - 1,
                                                        .keeper = SPW_CLI_ADVISE_NONE,
                                                        .first_change = history->change_count,
                                                        .last_change = SIZE_MAX,
                                                        .is_saved = saved};
    change(history, life, bytes, false);
    return life;
}

/* Returns the life of the output. */
static uint32_t note_pass(struct spw_cli_advise_history *history, const struct block *block,
                          uint32_t module, uint32_t *ret_lives)
{
    uint32_t output;
    struct spw_cli_advise_pass *pass = &history->passes[history->pass_count++];
    uint64_t held = 0;

    *pass = (struct spw_cli_advise_pass){.module = module, .first_change = history->change_count};
    for (int k = 0; k < TENSORS; k++) {
        ret_lives[k] = begin(history, block->tensors[k], block->saved[k]);
        held += block->tensors[k];
        pass->work_bytes = held > pass->work_bytes ? held : pass->work_bytes;
        if (!block->saved[k]) {
            change(history, ret_lives[k], block->tensors[k], true);
            held -= block->tensors[k];
        }
    }
    output = begin(history, block->output, false);
    pass->last_change = history->change_count;
    return output;
}

static void note_backward(struct spw_cli_advise_history *history, const struct block *block,
                          struct spw_cli_advise_pass *pass, const uint32_t *lives, uint32_t output)
{
    pass->again_change = history->change_count;
    change(history, SPW_CLI_ADVISE_NONE, block->gradient, false);
    for (int k = 0; k < TENSORS; k++) {
        if (block->saved[k]) {
            change(history, lives[k], block->tensors[k], true);
            pass->done_change = history->change_count;
        }
    }
    if (history->lives[output].last_change == SIZE_MAX) {
        change(history, output, block->output, true);
    }
    change(history, SPW_CLI_ADVISE_NONE, block->gradient, true);
}

/* The block before frees its output, which the pass `keeper` has as an argument. */
static void forget(struct spw_cli_advise_history *history, uint32_t output, uint64_t bytes,
                   uint32_t keeper)
{
    history->lives[output].keeper = keeper;
    change(history, output, bytes, true);
}

static void note(struct spw_cli_advise_history *history, const struct program *program)
{
    change(history, SPW_CLI_ADVISE_NONE, program->weights, false);
    for (int step = 0; step < STEPS; step++) {
        uint32_t lives[BLOCKS][TENSORS], outputs[BLOCKS];
        size_t first = history->pass_count;

        for (size_t i = 0; i < program->count; i++) {
            outputs[i] = note_pass(history, &program->blocks[i], (uint32_t)i, lives[i]);
            if (program->blocks[i].forgets) {
                forget(history, outputs[i - 1], program->blocks[i - 1].output,
                       (uint32_t)(first + i));
            }
        }
        change(history, SPW_CLI_ADVISE_NONE, program->loss, false);
        for (size_t i = program->count; i-- > 0;) {
            note_backward(history, &program->blocks[i], &history->passes[first + i], lives[i],
                          outputs[i]);
        }
        change(history, SPW_CLI_ADVISE_NONE, program->loss, true);
    }
}

enum {
    PASSES = BLOCKS * STEPS,
    LIVES = PASSES * (TENSORS + 1),
    CHANGES = LIVES * 2 + PASSES * 4 + 16
};

static struct spw_cli_advise_history history;

static void remember(const struct program *program)
{
    static struct spw_cli_advise_change changes[CHANGES];
    static struct spw_cli_advise_life lives[LIVES];
    static struct spw_cli_advise_pass passes[PASSES];
    static struct spw_cli_advise_kind other;

    memset(&history, 0, sizeof(history));
    history.changes = changes;
    history.lives = lives;
    history.passes = passes;
    history.kinds = &other;
    history.kind_count = 1;
    history.module_count = program->count;
    note(&history, program);
}

/* ---- tests ---- */

static void choose_by_bits(bool *again, size_t count, unsigned bits)
{
    for (size_t i = 0; i < count; i++) {
        again[i] = (bits >> i & 1) != 0;
    }
}

/* Every set of modules of random programs has the peak of the program that recomputes this set. The
 * bytes at the moment of the peak add up to it. */
static void test_peaks(void **unused)
{
    for (int number = 0; number < PROGRAMS; number++) {
        struct program program;
        struct spw_cli_advise_timeline timeline;

        make(&program, number % 4 == 0);
        remember(&program);
        assert_true(spw_cli_advise_timeline_make(&history, NULL, &timeline));
        for (unsigned bits = 0; bits < 1u << program.count; bits++) {
            bool again[BLOCKS];
            struct spw_cli_advise_extent extent;
            uint64_t bytes;

            choose_by_bits(again, program.count, bits);
            extent = spw_cli_advise_timeline_extent(&timeline, again, NULL);
            assert_int_equal(extent.device_bytes, run(&program, again));
            spw_cli_advise_timeline_at(&history, again, extent.device_moment, &bytes);
            assert_int_equal(bytes, extent.device_bytes);
        }
        spw_cli_advise_timeline_fini(&timeline);
    }
}

/* A question about a program. */
struct asked {
    struct program program;
    struct spw_cli_advise_timeline timeline;
    uint64_t costs[BLOCKS];
    struct spw_cli_advise_modules_problem problem;
};

static void asked_init(struct asked *asked)
{
    remember(&asked->program);
    assert_true(spw_cli_advise_timeline_make(&history, NULL, &asked->timeline));
    for (size_t i = 0; i < asked->program.count; i++) {
        asked->costs[i] = asked->program.blocks[i].cost_ns;
    }
    asked->problem = (struct spw_cli_advise_modules_problem){.count = asked->program.count,
                                                             .costs = asked->costs,
                                                             .peak = spw_cli_advise_timeline_peak,
                                                             .context = &asked->timeline};
}

static double value_of(const struct spw_cli_advise_modules_problem *problem, const bool *again)
{
    uint64_t peak = problem->peak(problem->context, again, NULL, NULL);
    uint64_t excess = peak > problem->limit ? peak - problem->limit : 0;

    return (double)spw_cli_advise_modules_cost(problem, again) +
           (double)excess * problem->excess_ns;
}

static double least_of_all(const struct spw_cli_advise_modules_problem *problem)
{
    double least = (double)UINT64_MAX;

    for (unsigned bits = 0; bits < 1u << problem->count; bits++) {
        bool again[BLOCKS];
        double value;

        choose_by_bits(again, problem->count, bits);
        value = value_of(problem, again);
        least = value < least ? value : least;
    }
    return least;
}

/* The choice costs at most 5 % more than the best one, with any budget, where memory that does not
 * fit is cheap, dear, or has no place. */
static void test_choices(void **unused)
{
    static const double rates[] = {0.002, 0.09, 1e6};

    for (int number = 0; number < PROGRAMS; number++) {
        struct asked asked;
        bool again[BLOCKS] = {false}, proven;
        double value, best;

        make(&asked.program, number % 4 == 0);
        asked_init(&asked);
        asked.problem.limit = run(&asked.program, again) / 100 * (20 + draw(80));
        asked.problem.excess_ns = rates[number % 3];
        assert_true(spw_cli_advise_modules_choose(&asked.problem, again, &proven));
        value = value_of(&asked.problem, again);
        best = least_of_all(&asked.problem);
        if (value > best * 1.05) {
            print_error("program %d: costs %.0f, the best costs %.0f\n", number, value, best);
            fail();
        }
        spw_cli_advise_timeline_fini(&asked.timeline);
    }
}

/* Of equal blocks, the first are recomputed, and no more than are needed. */
static void test_first_of_equal_blocks(void **unused)
{
    struct asked asked;
    bool none[BLOCKS] = {false}, again[BLOCKS], proven, ended = false;
    size_t count = 0;

    do {
        make(&asked.program, true);
    } while (asked.program.count < BLOCKS);
    asked.program.loss = 2000 * MIB; /* the peak is at the end of the forward passes */
    asked_init(&asked);
    asked.problem.excess_ns = 1e6;
    asked.problem.limit =
        run(&asked.program, none) - (uint64_t)asked.timeline.saved_device[0] * 3 / 2;
    assert_true(spw_cli_advise_modules_choose(&asked.problem, again, &proven));
    assert_true(proven);
    for (size_t i = 0; i < asked.program.count; i++) {
        assert_false(again[i] && ended);
        ended |= !again[i];
        count += again[i];
    }
    assert_int_equal(count, 2);
    spw_cli_advise_timeline_fini(&asked.timeline);
}

/* The points of the curve are peaks of sets that grow, and fall. */
static void test_curve(void **unused)
{
    for (int number = 0; number < PROGRAMS; number++) {
        struct asked asked;
        struct spw_cli_advise_point points[BLOCKS + 1];
        bool none[BLOCKS] = {false};
        size_t count;

        make(&asked.program, number % 4 == 0);
        asked_init(&asked);
        count = spw_cli_advise_modules_curve(&asked.problem, points);
        assert_true(count > 0);
        assert_int_equal(points[0].count, 0);
        assert_int_equal(points[0].peak, run(&asked.program, none));
        for (size_t i = 1; i < count; i++) {
            assert_true(points[i].peak < points[i - 1].peak);
            assert_true(points[i].cost_ns > points[i - 1].cost_ns);
            assert_true(points[i].count > points[i - 1].count);
        }
        spw_cli_advise_timeline_fini(&asked.timeline);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_peaks),
        cmocka_unit_test(test_choices),
        cmocka_unit_test(test_first_of_equal_blocks),
        cmocka_unit_test(test_curve),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
