/* The exports of a process when memory runs out: nothing is kept, and the caller keeps its
 * descriptors. */
#include "ipc/table.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <unistd.h>

#include <cmocka.h>

#include "malloc_faults.h"

enum { CHUNKS = 3, PAGE = 4096 };

static const uint64_t chunks[CHUNKS] = {PAGE, 2 * PAGE, PAGE};

static void open_all(int *fds)
{
    for (int i = 0; i < CHUNKS; i++) {
        fds[i] = open("/dev/null", O_RDONLY | O_CLOEXEC);
        assert_true(fds[i] >= 0);
    }
}

static bool are_open(const int *fds)
{
    bool open = true;

    for (int i = 0; i < CHUNKS; i++) {
        open &= fcntl(fds[i], F_GETFD) >= 0;
    }
    return open;
}

static bool add(const int *fds, uint64_t block, struct spw_ipc_handle *handle)
{
    return spw_ipc_table_add(
        &(struct spw_ipc_export){
            .address = PAGE, .block = block, .count = CHUNKS, .fds = fds, .chunks = chunks},
        handle);
}

/* Each allocation fails once. Returns how many there are. */
static long add_with_faults(const int *fds, uint64_t block)
{
    struct spw_ipc_handle handle;
    long failed = 0, live = live_allocations;

    for (;;) {
        calls_until_failure = failed + 1;
        if (add(fds, block, &handle)) {
            calls_until_failure = 0;
            return failed;
        }
        failed++;
        assert_int_equal(calls_until_failure, 0);
        assert_int_equal(live_allocations, live);
        assert_true(are_open(fds));
    }
}

static void test_no_memory(void **state)
{
    long live = live_allocations;
    struct spw_ipc_handle found;
    int fds[CHUNKS];

    open_all(fds);
    assert_true(add_with_faults(fds, 1) >= 3);
    assert_true(spw_ipc_table_find(PAGE, 1, &found));
    assert_int_equal(atomic_load(&spw_ipc.exports.count), 1);
    spw_ipc_table_remove(PAGE);
    assert_int_equal(atomic_load(&spw_ipc.exports.count), 0);
    assert_false(are_open(fds));
    assert_true(live_allocations - live <= 1); /* the table itself */
}

/* The older export at an address ends with the newer one. */
static void test_in_place_of_an_older_one(void **state)
{
    struct spw_ipc_handle handle;
    int fds[CHUNKS], newer[CHUNKS];
    long live;

    open_all(fds);
    assert_true(add(fds, 1, &handle));
    live = live_allocations;
    open_all(newer);
    assert_true(add(newer, 2, &handle));
    assert_int_equal(live_allocations, live);
    assert_false(are_open(fds));
    assert_true(are_open(newer));
    assert_false(spw_ipc_table_find(PAGE, 1, &handle));
    spw_ipc_table_end_context(NULL);
    assert_false(are_open(newer));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_in_place_of_an_older_one),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
