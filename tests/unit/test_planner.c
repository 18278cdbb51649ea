/* The planner, against rules worked out by hand and against brute force. */
#include "migrate/learn/planner.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "migrate/learn/block_index.h"

enum { MIB = 1 << 20, GRANULE = 2 * MIB, MOST = 64 };

#define NEVER UINT32_MAX

static size_t ask(struct spw_planner_chunk *granules, size_t count,
                  const struct spw_planner_need *needs, size_t need_count, int64_t room,
                  struct spw_planner_move *moves)
{
    const struct spw_planner_input input = {.chunks = granules,
                                            .chunk_count = count,
                                            .needs = needs,
                                            .need_count = need_count,
                                            .room_bytes = room,
                                            .granule_bytes = GRANULE,
                                            .most = MOST,
                                            .fetch = true,
                                            .least_gap = 2};
    uint32_t at;

    return spw_migrate_planner_run(&input, moves, &at);
}

static void test_farthest_goes_for_nearest(void **state)
{
    struct spw_planner_chunk granules[] = {
        {.index = 0, .count = 1, .next = 50, .end = NEVER},
        {.index = 1, .count = 1, .next = 90, .end = NEVER},
        {.index = 2, .count = 1, .next = 30, .end = NEVER},
        {.index = 3, .count = 1, .next = 40, .end = NEVER, .host = true},
        {.index = 4, .count = 1, .next = 10, .end = NEVER, .host = true},
        {.index = 5, .count = 1, .next = NEVER, .end = NEVER, .host = true},
    };
    struct spw_planner_move moves[2 * MOST];

    assert_int_equal(ask(granules, 6, NULL, 0, 0, moves), 4);
    assert_int_equal(moves[0].index, 1);
    assert_true(moves[0].to_host);
    assert_int_equal(moves[1].index, 4);
    assert_false(moves[1].to_host);
    assert_int_equal(moves[2].index, 0);
    assert_int_equal(moves[3].index, 3);
}

/* Fetches leave room free; other needs may take it. */
static void test_kept_from_fetches(void **state)
{
    const struct spw_planner_need need = {5, GRANULE};
    struct spw_planner_move moves[2 * MOST];

    for (int fetch = 0; fetch < 2; fetch++) {
        struct spw_planner_chunk granules[] = {
            {.index = 0, .count = 1, .next = 50, .end = NEVER},
            {.index = 1, .count = 1, .next = 5, .end = NEVER, .host = true}};
        const struct spw_planner_input input = {.chunks = granules,
                                                .chunk_count = 2,
                                                .needs = &need,
                                                .need_count = fetch == 0,
                                                .room_bytes = GRANULE,
                                                .kept_bytes = GRANULE,
                                                .granule_bytes = GRANULE,
                                                .most = MOST,
                                                .fetch = fetch == 1};
        uint32_t at;

        assert_int_equal(spw_migrate_planner_run(&input, moves, &at), 2 * fetch);
    }
}

/* A granule that is used sooner than the need stays. */
static void test_no_thrash(void **state)
{
    struct spw_planner_chunk granules[] = {
        {.index = 0, .count = 1, .next = 50, .end = NEVER},
        {.index = 1, .count = 1, .next = 60, .end = NEVER},
        {.index = 2, .count = 1, .next = 59, .end = NEVER, .host = true}};
    struct spw_planner_move moves[2 * MOST];

    assert_int_equal(ask(granules, 3, NULL, 0, 0, moves), 0);
}

static void test_room_that_comes_and_goes(void **state)
{
    const struct spw_planner_need needs[] = {
        {5, 2 * GRANULE}, {20, -2 * GRANULE}, {30, GRANULE}, {40, 2 * GRANULE}};
    struct spw_planner_chunk granules[] = {{.index = 0, .count = 1, .next = 100, .end = NEVER},
                                           {.index = 1, .count = 1, .next = 70, .end = NEVER},
                                           {.index = 2, .count = 1, .next = 41, .end = NEVER}};
    struct spw_planner_move moves[2 * MOST];

    assert_int_equal(ask(granules, 3, needs, 4, 2 * GRANULE, moves), 1);
    assert_int_equal(moves[0].index, 0);
    assert_true(moves[0].to_host);
}

static void test_priority_comes_first(void **state)
{
    const struct spw_planner_need need = {1, GRANULE};
    struct spw_planner_chunk granules[] = {
        {.index = 0, .count = 1, .next = 100, .end = NEVER, .priority = 1},
        {.index = 1, .count = 1, .next = 10, .end = NEVER}};
    struct spw_planner_move moves[2 * MOST];

    assert_int_equal(ask(granules, 2, &need, 1, 0, moves), 1);
    assert_int_equal(moves[0].index, 1);
}

static void test_age_where_nothing_is_known(void **state)
{
    struct spw_planner_chunk granules[] = {
        {.index = 0, .count = 1, .next = NEVER, .end = NEVER, .age = 10},
        {.index = 1, .count = 1, .next = NEVER, .end = NEVER, .age = 300},
        {.index = 2, .count = 1, .next = NEVER, .end = NEVER, .age = 200}};
    const struct spw_planner_need need = {0, 3 * GRANULE};
    const struct spw_planner_input input = {.chunks = granules,
                                            .chunk_count = 3,
                                            .needs = &need,
                                            .need_count = 1,
                                            .granule_bytes = GRANULE,
                                            .most = MOST,
                                            .least_age = 100};
    struct spw_planner_move moves[2 * MOST];
    uint32_t at;

    assert_int_equal(spw_migrate_planner_run(&input, moves, &at), 2);
    assert_int_equal(moves[0].index, 1);
    assert_int_equal(moves[1].index, 2);
}

/* Ages decide only between those that are never used. */
static void test_age_and_next_use(void **state)
{
    struct spw_planner_chunk granules[] = {
        {.index = 0, .count = 1, .next = 100, .end = NEVER, .age = 50},
        {.index = 1, .count = 1, .next = 100, .end = NEVER, .age = 300},
        {.index = 2, .count = 1, .next = NEVER, .end = NEVER, .age = 10},
        {.index = 3, .count = 1, .next = NEVER, .end = NEVER, .age = 20}};
    const struct spw_planner_need need = {0, 3 * GRANULE};
    struct spw_planner_input input = {.chunks = granules,
                                      .chunk_count = 4,
                                      .needs = &need,
                                      .need_count = 1,
                                      .granule_bytes = GRANULE,
                                      .most = MOST};
    struct spw_planner_move moves[2 * MOST];
    uint32_t at;

    for (input.grain_events = 0; input.grain_events <= 10; input.grain_events += 10) {
        assert_int_equal(spw_migrate_planner_run(&input, moves, &at), 3);
        assert_int_equal(at, 0);
        assert_int_equal(moves[0].index, 3);
        assert_int_equal(moves[1].index, 2);
        assert_int_equal(moves[2].index, 0);
    }
}

/* A chunk of several granules moves as a whole. The first one of each direction always may; the
 * others only within the limit. */
static void test_large_chunks(void **state)
{
    static const struct {
        uint32_t counts[3];
        size_t most, chosen;
    } cases[] = {{{2, 2, 2}, 3, 1}, {{2, 2, 2}, 4, 2}, {{5, 1, 1}, 4, 1},
                 {{2, 2, 2}, 6, 3}, {{1, 3, 1}, 4, 2}, {{2, 3, 1}, 4, 1}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        for (int host = 0; host < 2; host++) {
            struct spw_planner_chunk chunks[3];
            const struct spw_planner_need need = {0, 20 * GRANULE};
            struct spw_planner_input input = {.chunks = chunks,
                                              .chunk_count = 3,
                                              .needs = &need,
                                              .need_count = host ? 0 : 1,
                                              .room_bytes = host ? 20 * GRANULE : 0,
                                              .granule_bytes = GRANULE,
                                              .most = cases[i].most,
                                              .fetch = host};
            struct spw_planner_move moves[2 * MOST];
            uint32_t at, index = 0;

            for (uint32_t k = 0; k < 3; k++) {
                chunks[k] = (struct spw_planner_chunk){.index = index,
                                                       .count = cases[i].counts[k],
                                                       .next = host ? 10 + k : 100 - k,
                                                       .end = NEVER,
                                                       .host = host};
                index += cases[i].counts[k];
            }
            assert_int_equal(spw_migrate_planner_run(&input, moves, &at), cases[i].chosen);
            assert_int_equal(at, host ? 10 : 0);
            for (size_t k = 0; k < cases[i].chosen; k++) {
                assert_int_equal(moves[k].count, cases[i].counts[k]);
                assert_int_equal(moves[k].to_host, !host);
            }
        }
    }
}

/* Nothing is chosen: there is no first need. */
static void test_nothing_to_do(void **state)
{
    struct spw_planner_chunk chunk = {.count = 1, .next = 5, .end = NEVER};
    const struct spw_planner_input input = {.chunks = &chunk,
                                            .chunk_count = 1,
                                            .room_bytes = GRANULE,
                                            .granule_bytes = GRANULE,
                                            .most = MOST,
                                            .fetch = true};
    struct spw_planner_move moves[2 * MOST];
    uint32_t at = 4711;

    assert_int_equal(spw_migrate_planner_run(&input, moves, &at), 0);
    assert_int_equal(at, NEVER);
}

/* The gap is counted from the need to the victim's next use. */
static void test_gap(void **state)
{
    for (uint32_t next = 11; next <= 13; next++) {
        const struct spw_planner_need need = {10, GRANULE};
        struct spw_planner_chunk chunk = {.count = 1, .next = next, .end = NEVER};
        struct spw_planner_move moves[2 * MOST];

        assert_int_equal(ask(&chunk, 1, &need, 1, 0, moves), next >= 12);
    }
}

/* ---- what is freed ---- */

/* A granule freed before the need gives its room by itself, so evicting it gains nothing. */
static void test_freed_in_time_stays(void **state)
{
    const struct spw_planner_need needs[] = {{10, -GRANULE}, {20, 2 * GRANULE}};
    struct spw_planner_chunk granules[] = {{.index = 0, .count = 1, .next = NEVER, .end = 10},
                                           {.index = 1, .count = 1, .next = 100, .end = NEVER}};
    struct spw_planner_move moves[2 * MOST];

    assert_int_equal(ask(granules, 2, needs, 2, 0, moves), 1);
    assert_int_equal(moves[0].index, 1);
}

/* A granule evicted for one need and freed before the next gives its room once only. */
static void test_room_is_given_once(void **state)
{
    const struct spw_planner_need needs[] = {{5, GRANULE}, {10, -GRANULE}, {20, 2 * GRANULE}};
    struct spw_planner_chunk granules[] = {{.index = 0, .count = 1, .next = NEVER, .end = 10},
                                           {.index = 1, .count = 1, .next = 100, .end = NEVER},
                                           {.index = 2, .count = 1, .next = 90, .end = NEVER}};
    struct spw_planner_move moves[2 * MOST];

    assert_int_equal(ask(granules, 3, needs, 3, 0, moves), 3);
    assert_int_equal(moves[0].index, 0);
    assert_int_equal(moves[1].index, 1);
    assert_int_equal(moves[2].index, 2);
}

/* A granule that was fetched and is freed gives its room back; freed on the host it would give
 * none. */
static void test_fetched_and_freed_gives_room(void **state)
{
    const struct spw_planner_need needs[] = {{10, 0}, {20, GRANULE}};
    struct spw_planner_chunk granules[] = {
        {.index = 0, .count = 1, .next = 5, .end = 10, .host = true},
        {.index = 1, .count = 1, .next = 100, .end = NEVER}};
    struct spw_planner_move moves[2 * MOST];

    assert_int_equal(ask(granules, 2, needs, 2, GRANULE, moves), 1);
    assert_int_equal(moves[0].index, 0);
    assert_false(moves[0].to_host);
}

/* A granule that was passed over changes nothing when it is freed. */
static void test_freed_without_a_move(void **state)
{
    const struct spw_planner_need needs[] = {
        {5, GRANULE}, {8, -GRANULE}, {10, -GRANULE}, {20, 2 * GRANULE}};
    struct spw_planner_chunk granules[] = {
        {.index = 0, .count = 1, .next = NEVER, .end = 8, .age = 5},
        {.index = 1, .count = 1, .next = NEVER, .end = 10, .age = 200},
        {.index = 2, .count = 1, .next = 100, .end = NEVER, .age = 100},
        {.index = 3, .count = 1, .next = 90, .end = NEVER, .age = 100}};
    struct spw_planner_input input = {.chunks = granules,
                                      .chunk_count = 4,
                                      .needs = needs,
                                      .need_count = 4,
                                      .granule_bytes = GRANULE,
                                      .most = MOST,
                                      .least_age = 50};
    struct spw_planner_move moves[2 * MOST];
    uint32_t at;

    granules[0].priority = -1; /* looked at first */
    assert_int_equal(spw_migrate_planner_run(&input, moves, &at), 2);
    assert_int_equal(at, 5);
    assert_int_equal(moves[0].index, 1);
    assert_int_equal(moves[1].index, 2);
}

/* Two that move and are freed, the second one first. */
static void test_two_are_freed(void **state)
{
    const struct spw_planner_need needs[] = {
        {5, 2 * GRANULE}, {10, -GRANULE}, {12, -GRANULE}, {15, 0}, {20, 2 * GRANULE}};
    struct spw_planner_chunk granules[] = {
        {.index = 0, .count = 1, .next = NEVER, .end = 12, .age = 9},
        {.index = 1, .count = 1, .next = NEVER, .end = 10, .age = 8},
        {.index = 2, .count = 1, .next = 100, .end = NEVER},
        {.index = 3, .count = 1, .next = 90, .end = NEVER},
        {.index = 4, .count = 1, .next = 80, .end = NEVER}};
    struct spw_planner_move moves[2 * MOST];

    assert_int_equal(ask(granules, 5, needs, 5, 0, moves), 4);
    assert_int_equal(moves[0].index, 0);
    assert_int_equal(moves[1].index, 1);
    assert_int_equal(moves[2].index, 2);
    assert_int_equal(moves[3].index, 3);
}

/* ---- against the fewest fetches there can be ---- */

enum { PAGES = 6, FRAMES = 3, LENGTH = 14 };

static int fewest(const int *uses, int at, unsigned resident)
{
    int best = LENGTH;

    if (at == LENGTH) {
        return 0;
    }
    if (resident >> uses[at] & 1) {
        return fewest(uses, at + 1, resident);
    }
    if (__builtin_popcount(resident) < FRAMES) {
        return 1 + fewest(uses, at + 1, resident | 1u << uses[at]);
    }
    for (int page = 0; page < PAGES; page++) {
        if (resident >> page & 1) {
            unsigned next = (resident & ~(1u << page)) | 1u << uses[at];
            int count = 1 + fewest(uses, at + 1, next);

            best = count < best ? count : best;
        }
    }
    return best;
}

static uint32_t next_use(const int *uses, int at, int page)
{
    for (int i = at; i < LENGTH; i++) {
        if (uses[i] == page) {
            return (uint32_t)(i - at);
        }
    }
    return UINT32_MAX;
}

/* Fetches one granule at a time when it is due. */
static int planned(const int *uses)
{
    unsigned resident = 0;
    int count = 0;

    for (int at = 0; at < LENGTH; at++) {
        struct spw_planner_chunk granules[PAGES];
        struct spw_planner_move moves[2];
        struct spw_planner_input input = {
            .chunks = granules, .granule_bytes = GRANULE, .most = 1, .fetch = true, .least_gap = 1};
        uint32_t due;

        if (resident >> uses[at] & 1) {
            continue;
        }
        for (int page = 0; page < PAGES; page++) {
            bool host = (resident >> page & 1) == 0;

            if (!host || page == uses[at]) {
                granules[input.chunk_count++] =
                    (struct spw_planner_chunk){.index = (uint32_t)page,
                                               .count = 1,
                                               .next = next_use(uses, at, page),
                                               .end = NEVER,
                                               .host = host};
            }
        }
        input.room_bytes = (FRAMES - __builtin_popcount(resident)) * (int64_t)GRANULE;
        for (size_t i = spw_migrate_planner_run(&input, moves, &due); i > 0; i--) {
            resident ^= 1u << moves[i - 1].index;
        }
        assert_true(resident >> uses[at] & 1);
        assert_true(__builtin_popcount(resident) <= FRAMES);
        count++;
    }
    return count;
}

static void test_as_few_as_can_be(void **state)
{
    for (unsigned seed = 0; seed < 200; seed++) {
        int uses[LENGTH];

        srand(seed);
        for (int i = 0; i < LENGTH; i++) {
            uses[i] = rand() % PAGES;
        }
        assert_int_equal(planned(uses), fewest(uses, 0, 0));
    }
}

/* ---- places ---- */

static void test_places(void **state)
{
    const uint64_t base = 64ull * GRANULE;
    struct spw_block_index places;

    assert_true(spw_migrate_block_index_init(&places, base, 32 * GRANULE, GRANULE, 16));
    spw_migrate_block_index_put(&places, 1, base, GRANULE / 2);
    spw_migrate_block_index_put(&places, 2, base + GRANULE / 2, 3 * GRANULE);
    spw_migrate_block_index_put(&places, 3, base + GRANULE / 2 * 7, GRANULE / 4);
    spw_migrate_block_index_put(&places, 4, base + 4 * GRANULE, 28 * GRANULE);
    assert_int_equal(spw_migrate_block_index_find(&places, base), 1);
    assert_int_equal(spw_migrate_block_index_find(&places, base + GRANULE / 2 - 1), 1);
    assert_int_equal(spw_migrate_block_index_find(&places, base + GRANULE / 2), 2);
    assert_int_equal(spw_migrate_block_index_find(&places, base + 3 * GRANULE), 2);
    assert_int_equal(spw_migrate_block_index_find(&places, base + GRANULE / 2 * 7), 3);
    assert_int_equal(spw_migrate_block_index_find(&places, base + GRANULE / 4 * 15), 0);
    assert_int_equal(spw_migrate_block_index_find(&places, base + 32 * GRANULE - 1), 4);
    assert_int_equal(
        spw_migrate_block_index_overlap(&places, base + GRANULE / 4 * 15, base + 4 * GRANULE), 0);
    assert_int_equal(
        spw_migrate_block_index_overlap(&places, base + GRANULE / 4 * 15, base + 5 * GRANULE), 4);
    spw_migrate_block_index_remove(&places, 2);
    assert_int_equal(spw_migrate_block_index_find(&places, base + GRANULE), 0);
    assert_int_equal(spw_migrate_block_index_find(&places, base + GRANULE / 2 * 7), 3);
    assert_int_equal(spw_migrate_block_index_find(&places, base), 1);
    assert_false(spw_migrate_block_index_contains(&places, base - 1));
    assert_false(spw_migrate_block_index_contains(&places, base + 32 * GRANULE));
    spw_migrate_block_index_fini(&places);
}

/* A block that is removed is found no more, whichever of its granule's blocks it was. */
static void test_removed_places(void **state)
{
    const uint64_t base = 64ull * GRANULE;
    struct spw_block_index places;

    assert_true(spw_migrate_block_index_init(&places, base, 32 * GRANULE, GRANULE, 16));
    spw_migrate_block_index_put(&places, 1, base + 20 * GRANULE, 2 * GRANULE);
    spw_migrate_block_index_put(&places, 2, base, 512);
    spw_migrate_block_index_put(&places, 3, base + 512, 3 * GRANULE);
    spw_migrate_block_index_put(&places, 4, base + 3 * GRANULE + 512, GRANULE / 2);
    spw_migrate_block_index_remove(&places, 2);
    assert_int_equal(spw_migrate_block_index_find(&places, base), 0);
    assert_int_equal(spw_migrate_block_index_find(&places, base + 512), 3);
    spw_migrate_block_index_remove(&places, 3);
    assert_int_equal(spw_migrate_block_index_find(&places, base + GRANULE), 0);
    assert_int_equal(spw_migrate_block_index_overlap(&places, base, base + 3 * GRANULE + 512), 0);
    assert_int_equal(spw_migrate_block_index_overlap(&places, base, base + 3 * GRANULE + 513), 4);
    assert_int_equal(
        spw_migrate_block_index_overlap(&places, base + 21 * GRANULE, base + 32 * GRANULE), 1);
    assert_int_equal(
        spw_migrate_block_index_overlap(&places, base + 5 * GRANULE, base + 20 * GRANULE), 0);
    spw_migrate_block_index_fini(&places);
}

/* The first victim among six neighbours, used from 1000 on, and one granule that is alone. */
static uint32_t first_of_seven(uint32_t apart, uint32_t alone, uint32_t grain)
{
    struct spw_planner_chunk granules[7];
    const struct spw_planner_need need = {.at = 1, .bytes = GRANULE};
    const struct spw_planner_input input = {.chunks = granules,
                                            .chunk_count = 7,
                                            .needs = &need,
                                            .need_count = 1,
                                            .granule_bytes = GRANULE,
                                            .most = MOST,
                                            .grain_events = grain};
    struct spw_planner_move moves[2 * MOST];
    uint32_t at;

    for (uint32_t i = 0; i < 6; i++) {
        granules[i] = (struct spw_planner_chunk){
            .index = 10 + i, .count = 1, .next = 1000 + i * apart, .end = NEVER};
    }
    granules[6] = (struct spw_planner_chunk){.index = 20, .count = 1, .next = alone, .end = NEVER};
    assert_int_equal(spw_migrate_planner_run(&input, moves, &at), 1);
    return moves[0].index;
}

/* Next uses within a grain are equal, so neighbours go together. */
static void test_neighbours_go_together(void **state)
{
    assert_int_equal(first_of_seven(0, 1001, 0), 20);
    assert_int_equal(first_of_seven(0, 1009, 10), 10);
    assert_int_equal(first_of_seven(0, 1010, 10), 20);
    assert_int_equal(first_of_seven(10, 1059, 10), 15);
    assert_int_equal(first_of_seven(10, 1060, 10), 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_farthest_goes_for_nearest),
        cmocka_unit_test(test_no_thrash),
        cmocka_unit_test(test_kept_from_fetches),
        cmocka_unit_test(test_room_that_comes_and_goes),
        cmocka_unit_test(test_priority_comes_first),
        cmocka_unit_test(test_age_where_nothing_is_known),
        cmocka_unit_test(test_age_and_next_use),
        cmocka_unit_test(test_large_chunks),
        cmocka_unit_test(test_nothing_to_do),
        cmocka_unit_test(test_gap),
        cmocka_unit_test(test_freed_in_time_stays),
        cmocka_unit_test(test_freed_without_a_move),
        cmocka_unit_test(test_two_are_freed),
        cmocka_unit_test(test_room_is_given_once),
        cmocka_unit_test(test_fetched_and_freed_gives_room),
        cmocka_unit_test(test_as_few_as_can_be),
        cmocka_unit_test(test_neighbours_go_together),
        cmocka_unit_test(test_places),
        cmocka_unit_test(test_removed_places),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
