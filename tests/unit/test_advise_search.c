/* The advisor's choice, compared with all choices that there are. */
#include "cli/advise/search.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "splitmix.h"

enum { PROGRAMS = 200, SITES = 10, POINTS = 24, MIB = 1 << 20 };

/* A program: its sites hold memory in a part of the run, and use it a number of times. A part of
 * the blocks of every other site can go, if `splits`. */
static void make(struct spw_cli_advise_problem *problem, bool splits)
{
    uint64_t totals[POINTS] = {0}, peak = 0, budget;

    memset(problem, 0, sizeof(*problem));
    problem->group_count = 1 + draw(SITES);
    problem->moment_count = 1 + draw(POINTS);
    for (size_t i = 0; i < problem->group_count; i++) {
        size_t begin = draw(problem->moment_count), length = 1 + draw(problem->moment_count);
        uint64_t bytes = (1 + draw(1000)) * MIB;

        problem->costs[i] = bytes / 35 * (1 + draw(12));
        problem->can_split[i] = splits && i % 2 == 0;
        problem->split_costs[i] = draw(2) * bytes / 20;
        for (size_t k = begin; k < problem->moment_count && k < begin + length; k++) {
            problem->moments[k].held[i] = draw(4) == 0 ? bytes / 2 : bytes;
            totals[k] += problem->moments[k].held[i];
        }
    }
    for (size_t k = 0; k < problem->moment_count; k++) {
        peak = totals[k] > peak ? totals[k] : peak;
    }
    budget = peak / 100 * (30 + draw(70));
    for (size_t k = 0; k < problem->moment_count; k++) {
        problem->moments[k].excess = totals[k] > budget ? totals[k] - budget : 0;
    }
    problem->host_bytes = draw(3) == 0 ? peak / 100 * (10 + draw(90)) : UINT64_MAX;
}

/* The bytes that a choice, as bits, moves to the host at a moment. */
static uint64_t moved(const struct spw_cli_advise_problem *problem, unsigned choice, size_t moment)
{
    uint64_t bytes = 0;

    for (size_t i = 0; i < problem->group_count; i++) {
        bytes += (choice >> i & 1) != 0 ? problem->moments[moment].held[i] : 0;
    }
    return bytes;
}

/* The cost of a choice and a share of one more group; UINT64_MAX: it does not meet the constraints.
 */
static uint64_t cost_of(const struct spw_cli_advise_problem *problem, unsigned choice, int split,
                        double share)
{
    double cost =
        split >= 0 ? share * (double)(problem->costs[split] + problem->split_costs[split]) : 0;

    for (size_t k = 0; k < problem->moment_count; k++) {
        const struct spw_cli_advise_moment *moment = &problem->moments[k];
        double bytes = (double)moved(problem, choice, k) +
                       (split >= 0 ? share * (double)moment->held[split] : 0);

        /* A share is not exact: half a byte. */
        if (bytes + 0.5 < (double)moment->excess || bytes - 0.5 > (double)problem->host_bytes) {
            return UINT64_MAX;
        }
    }
    for (size_t i = 0; i < problem->group_count; i++) {
        cost += (choice >> i & 1) != 0 ? (double)problem->costs[i] : 0;
    }
    return (uint64_t)cost;
}

/* The least share of a group that, with a choice, covers what has to go; 2: none does. */
static double share_needed(const struct spw_cli_advise_problem *problem, unsigned choice, int split)
{
    double share = 0;

    for (size_t k = 0; k < problem->moment_count; k++) {
        const struct spw_cli_advise_moment *moment = &problem->moments[k];
        uint64_t bytes = moved(problem, choice, k);

        if (bytes < moment->excess) {
            double needed = moment->held[split] > 0
                                ? (double)(moment->excess - bytes) / (double)moment->held[split]
                                : 2;

            share = needed > share ? needed : share;
        }
    }
    return share;
}

static uint64_t least_of_all(const struct spw_cli_advise_problem *problem)
{
    uint64_t least = UINT64_MAX;

    for (unsigned choice = 0; choice < 1u << problem->group_count; choice++) {
        uint64_t cost = cost_of(problem, choice, -1, 0);

        least = cost < least ? cost : least;
        for (int split = 0; split < (int)problem->group_count; split++) {
            double share;

            if (!problem->can_split[split] || (choice >> split & 1) != 0) {
                continue;
            }
            share = share_needed(problem, choice, split);
            cost = share <= 1 ? cost_of(problem, choice, split, share) : UINT64_MAX;
            least = cost < least ? cost : least;
        }
    }
    return least;
}

static unsigned bits_of(const struct spw_cli_advise_choice *choice)
{
    unsigned bits = 0;

    for (unsigned i = 0; i < SITES; i++) {
        bits |= choice->on_host[i] ? 1u << i : 0;
    }
    return bits;
}

static void agree_with_all_choices(bool splits)
{
    const char *given = getenv("ADVISE_SEED");
    uint64_t seed = given != NULL ? strtoull(given, NULL, 0) : 20;
    struct spw_cli_advise_problem *problem = malloc(sizeof(*problem));
    unsigned possible = 0, impossible = 0, in_part = 0;

    assert_non_null(problem);
    print_message("seed %" PRIu64 " (ADVISE_SEED)\n", seed);
    for (unsigned i = 0; i < PROGRAMS; i++) {
        struct spw_cli_advise_choice choice;
        uint64_t least;
        bool found;

        splitmix_state = seed * 1000 + i;
        make(problem, splits);
        least = least_of_all(problem);
        found = spw_cli_advise_search(problem, &choice);
        if (found != (least != UINT64_MAX) || !choice.proven) {
            fail_msg("program %u of seed %" PRIu64 ": %s", i, seed,
                     found ? "a choice where there is none" : "no choice");
        }
        if (!found) {
            impossible++;
            continue;
        }
        possible++;
        in_part += choice.split >= 0;
        assert_true(choice.bound <= choice.cost);
        assert_in_range(
            choice.cost + 1 - cost_of(problem, bits_of(&choice), choice.split, choice.share), 0, 2);
        if (choice.cost > least + least / 50) {
            fail_msg("program %u of seed %" PRIu64 ": cost %" PRIu64 ", least %" PRIu64, i, seed,
                     choice.cost, least);
        }
    }
    /* Both answers occur often enough to be tested. */
    assert_true(possible >= PROGRAMS / 2);
    assert_true(impossible >= 5);
    assert_true(splits ? in_part >= PROGRAMS / 4 : in_part == 0);
    free(problem);
}

static void test_agrees_with_all_choices(void **context)
{
    (void)context;
    agree_with_all_choices(false);
}

static void test_agrees_where_groups_can_be_split(void **context)
{
    (void)context;
    agree_with_all_choices(true);
}

/* Where one moment decides, and all groups can be split, the choice costs no more than the bound.
 */
static void test_meets_the_bound(void **context)
{
    struct spw_cli_advise_problem *problem = malloc(sizeof(*problem));
    unsigned split = 0;

    (void)context;
    assert_non_null(problem);
    for (unsigned i = 0; i < PROGRAMS; i++) {
        struct spw_cli_advise_choice choice;
        uint64_t held = 0;

        splitmix_state = 4711 + i;
        make(problem, /* splits */ true);
        problem->moment_count = 1;
        problem->host_bytes = UINT64_MAX;
        for (size_t k = 0; k < problem->group_count; k++) {
            problem->can_split[k] = true;
            problem->split_costs[k] = 0; /* not in the bound */
            problem->moments[0].held[k] = (1 + draw(1000)) * MIB;
            held += problem->moments[0].held[k];
        }
        problem->moments[0].excess = held / 100 * (10 + draw(80));
        assert_true(spw_cli_advise_search(problem, &choice));
        assert_in_range(choice.cost + 1 - choice.bound, 0, 2);
        split += choice.split >= 0;
    }
    assert_true(split > PROGRAMS / 2);
    free(problem);
}

/* Many equal groups: the search ends, with a choice that covers the excess. */
static void test_ends(void **context)
{
    struct spw_cli_advise_problem *problem = calloc(1, sizeof(*problem));
    struct spw_cli_advise_choice choice;
    uint64_t bytes = 0;

    (void)context;
    assert_non_null(problem);
    splitmix_state = 7;
    problem->group_count = SPW_CLI_ADVISE_GROUPS;
    problem->moment_count = SPW_CLI_ADVISE_MOMENTS;
    problem->host_bytes = UINT64_MAX;
    for (size_t i = 0; i < problem->group_count; i++) {
        problem->costs[i] = 1000000 + draw(1000);
        for (size_t k = 0; k < problem->moment_count; k++) {
            problem->moments[k].held[i] = (100 + draw(10)) * MIB;
            problem->moments[k].excess += problem->moments[k].held[i] / 2;
        }
    }
    assert_true(spw_cli_advise_search(problem, &choice));
    for (size_t i = 0; i < problem->group_count; i++) {
        bytes += choice.on_host[i] ? problem->moments[0].held[i] : 0;
    }
    assert_true(bytes >= problem->moments[0].excess);
    free(problem);
}

static void test_nothing_to_do(void **context)
{
    static struct spw_cli_advise_problem problem = {.group_count = 1, .moment_count = 1};
    struct spw_cli_advise_choice choice;

    (void)context;
    problem.moments[0].held[0] = MIB;
    problem.costs[0] = 5;
    assert_true(spw_cli_advise_search(&problem, &choice));
    assert_false(choice.on_host[0]);
    assert_int_equal(choice.cost, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_agrees_with_all_choices),
        cmocka_unit_test(test_agrees_where_groups_can_be_split),
        cmocka_unit_test(test_meets_the_bound),
        cmocka_unit_test(test_ends),
        cmocka_unit_test(test_nothing_to_do),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
