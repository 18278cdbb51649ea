/* Native stacks: which are told apart, and which are recognised without a walk. */
#include "site_chain.h"
#include "site_probe.h"

#include "common/options.h"

#include <alloca.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { FRAMES = 36, MOST = 64, ROUNDS = 100 };

static uintptr_t leaf_frame; /* of the last capture */

/* After each capture of `chains`. */
static uintptr_t frames_at[ROUNDS];
static unsigned walks_at[ROUNDS];

/* Before which capture of `chains` to fork, and the child it gave. */
static int fork_at = -1;
static pid_t child = -1;

static __attribute__((noinline)) uint32_t leaf(void)
{
    uint32_t site;

    leaf_frame = (uintptr_t)__builtin_frame_address(0);
    site = probe_capture();
    __asm__ volatile("" ::: "memory"); /* not a jump */
    return site;
}

static uint32_t (*volatile entries[])(int, chain_leaf *) = {chain_two, chain_one};

/* Captures below chain_one or chain_two, `count` times as `which` says, all from one place. */
static __attribute__((noinline)) void chains(const bool *which, int count, uint32_t *ret_sites)
{
    /* A counter that the compiler knows nothing of: the loop stays one place. */
    for (volatile int i = 0; i < count; i++) {
        child = i == fork_at ? fork() : child;
        ret_sites[i] = entries[which[i]](FRAMES - 3, leaf);
        frames_at[i] = leaf_frame;
        walks_at[i] = probe_walks();
    }
}

static void test_the_outermost_of_36_frames_counts(void **state)
{
    const bool which[] = {true, false};
    uint64_t first[MOST], second[MOST];
    int differing = 0, place = -1, count;
    uint32_t sites[2];

    chains(which, 2, sites);
    assert_int_not_equal(sites[0], 0);
    assert_int_not_equal(sites[1], 0);
    assert_int_not_equal(sites[0], sites[1]);
    assert_int_equal(frames_at[0], frames_at[1]); /* the stack pointer does not tell them apart */
    count = probe_native(sites[0], first);
    assert_int_equal(probe_native(sites[1], second), count);
    assert_true(count >= FRAMES);
    for (int i = 0; i < count; i++) {
        differing += first[i] != second[i];
        place = first[i] != second[i] ? i : place;
    }
    assert_int_equal(differing, 1);
    assert_int_equal(place, FRAMES - 1);
}

static void test_a_repeat_is_recognised_without_a_walk(void **state)
{
    bool which[ROUNDS];
    uint32_t sites[ROUNDS];

    memset(which, true, sizeof(which));
    chains(which, ROUNDS, sites);
    for (int i = 1; i < ROUNDS; i++) {
        assert_int_equal(sites[i], sites[0]);
    }
    assert_int_equal(walks_at[ROUNDS - 1], walks_at[1]); /* the second walk makes the guard */
}

static void test_a_stale_entry_is_not_accepted(void **state)
{
    bool which[ROUNDS];
    uint32_t sites[ROUNDS];

    /* The first is learned before the second comes to the same place. */
    for (int i = 0; i < ROUNDS; i++) {
        which[i] = i < 10 || i % 3 == 0;
    }
    chains(which, ROUNDS, sites);
    assert_int_not_equal(sites[0], sites[10]);
    for (int i = 0; i < ROUNDS; i++) {
        assert_int_equal(frames_at[i], frames_at[0]);
        assert_int_equal(sites[i], which[i] ? sites[0] : sites[10]);
    }
    assert_int_equal(walks_at[ROUNDS - 1], walks_at[20]);
}

/* The innermost frames stand at the same place in every case, and what one case left on the stack
 * is still there in the next: only the frame pointer tells that the frames between are others. */
static void test_frames_of_any_size(void **state)
{
    static uint32_t (*volatile callers[])(size_t, size_t, chain_leaf *) = {chain_sized,
                                                                           chain_sized_too};
    static const size_t sizes[][2] = {{512, 1024}, {1024, 512}, {768, 768}};
    uintptr_t frame = 0;
    uint32_t sites[2] = {0};

    for (volatile int round = 0; round < 60; round++) {
        /* Each is learned before the next. */
        int which = round / 5 % 2, size = round / 5 % 3;
        uint32_t site = callers[which](sizes[size][0], sizes[size][1], leaf);

        sites[which] = sites[which] == 0 ? site : sites[which];
        frame = frame == 0 ? leaf_frame : frame;
        assert_int_not_equal(site, 0);
        assert_int_equal(site, sites[which]); /* wherever the frames stand */
        assert_int_equal(leaf_frame, frame);
    }
    assert_int_not_equal(sites[0], sites[1]);
}

/* Captures from this function itself or, with `deep`, from a leaf below it. What the other case
 * left on the stack is still there: only the place of the innermost frame tells the two apart. */
static __attribute__((noinline)) uint32_t itself_or_below(bool deep)
{
    char *room = alloca(deep ? 2048 : 16);
    uint32_t site;

    __asm__ volatile("" ::"r"(room) : "memory");
    site = deep ? leaf() : probe_capture();
    __asm__ volatile("" ::: "memory");
    return site;
}

static void test_what_is_left_on_the_stack_is_not_taken_for_it(void **state)
{
    uint32_t sites[2] = {0};

    for (volatile int i = 0; i < ROUNDS; i++) {
        bool deep = i / 8 % 2 != 0;
        uint32_t site = itself_or_below(deep);

        sites[deep] = sites[deep] == 0 ? site : sites[deep];
        assert_int_not_equal(site, 0);
        assert_int_equal(site, sites[deep]);
    }
    assert_int_not_equal(sites[0], sites[1]);
}

/* The stack is the same, and the function that was called, or the thread's tag, is not. */
static void test_calls_and_tags_are_told_apart(void **state)
{
    static const char *const tags[] = {"", "kv-cache"};
    uint32_t sites[4] = {0};

    for (volatile int i = 0; i < ROUNDS; i++) {
        int which = i < 16 ? i / 4 : i % 4;
        uint32_t site;

        assert_true(probe_tag(tags[which / 2]));
        site = probe_capture_as(which % 2 != 0 ? "other" : "probe");
        sites[which] = sites[which] == 0 ? site : sites[which];
        assert_int_not_equal(site, 0);
        assert_int_equal(site, sites[which]);
    }
    assert_true(probe_tag(""));
    for (int i = 0; i < 4; i++) {
        for (int j = 0; j < i; j++) {
            assert_int_not_equal(sites[i], sites[j]);
        }
    }
}

static void test_frames_that_align_their_stack(void **state)
{
    uint32_t first = 0;

    for (volatile size_t i = 0; i < 64 * 4; i++) {
        volatile char *room = i % 4 == 0 ? alloca(16) : alloca(1);
        uint32_t site;

        room[0] = 0;
        site = chain_aligned(3, leaf);
        first = i == 0 ? site : first;
        assert_int_not_equal(site, 0);
        assert_int_equal(site, first);
    }
}

static void test_depth_is_bounded(void **state)
{
    uint64_t addresses[MOST];
    uint32_t site = chain_one(1000, leaf);

    assert_int_equal(probe_native(site, addresses), MOST);
    assert_int_equal(chain_two(1001, leaf), site); /* beyond what is kept */
}

static void *in_thread(void *name)
{
    static bool which[ROUNDS] = {true};
    static uint32_t sites[ROUNDS];

    (void)prctl(PR_SET_NAME, name);
    for (int i = 0; i < ROUNDS; i++) {
        which[i] = i % 2 == 0;
    }
    chains(which, ROUNDS, sites);
    for (int i = 0; i < ROUNDS; i++) {
        if (sites[i] != sites[i % 2]) {
            return NULL;
        }
    }
    return sites;
}

static void test_threads_have_names(void **state)
{
    static const char *const names[] = {"pt_autograd_0", "pt_autograd_1"};
    uint32_t sites[2];

    for (int i = 0; i < 2; i++) {
        pthread_t thread;
        void *result;

        assert_int_equal(pthread_create(&thread, NULL, in_thread, (void *)(uintptr_t)names[i]), 0);
        assert_int_equal(pthread_join(thread, &result), 0);
        assert_non_null(result);
        sites[i] = *(uint32_t *)result;
        assert_string_equal(probe_thread(sites[i]), names[i]);
    }
    assert_int_not_equal(sites[0], sites[1]);
    assert_string_equal(probe_thread(leaf()), "main");
}

static void test_a_child_goes_on(void **state)
{
    const bool which[] = {true, true, true, true};
    uint32_t sites[4];
    int status = -1;

    fork_at = 2;
    chains(which, 4, sites);
    fork_at = -1;
    for (int i = 1; i < 4; i++) {
        if (child == 0 && sites[i] != sites[0]) {
            _exit(1);
        }
        assert_int_equal(sites[i], sites[0]);
    }
    if (child == 0) {
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_outermost_of_36_frames_counts),
        cmocka_unit_test(test_a_repeat_is_recognised_without_a_walk),
        cmocka_unit_test(test_a_stale_entry_is_not_accepted),
        cmocka_unit_test(test_frames_of_any_size),
        cmocka_unit_test(test_what_is_left_on_the_stack_is_not_taken_for_it),
        cmocka_unit_test(test_calls_and_tags_are_told_apart),
        cmocka_unit_test(test_frames_that_align_their_stack),
        cmocka_unit_test(test_depth_is_bounded),
        cmocka_unit_test(test_threads_have_names),
        cmocka_unit_test(test_a_child_goes_on),
    };

    probe_start(SPW_SITES_NATIVE);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
