/* A job of which one rank runs (SPILLWAY_SIM_WORLD): nothing waits for the others, and this rank's
 * own data takes the place of theirs. */
#include "cases.h"

#include <nccl.h>

#include "sim/libs/nccl/absent.h"

enum { RANKS = 4, RANK = 2, WORDS = 256 };

#define BYTES      ((size_t)WORDS * sizeof(int))
#define GOOD(call) assert_int_equal((call), ncclSuccess)

static ncclComm_t comm;
static CUdeviceptr from, to;

static int join(void **state)
{
    ncclUniqueId nobody = {{0}};

    GOOD(ncclCommInitRank(&comm, RANKS, nobody, RANK));
    OK(cuMemAlloc(&from, RANKS * BYTES));
    OK(cuMemAlloc(&to, RANKS * BYTES));
    for (int i = 0; i < RANKS; i++) {
        OK(cuMemsetD32(from + i * BYTES, 100 + i, WORDS));
    }
    OK(cuMemsetD32(to, 7, RANKS * WORDS));
    return 0;
}

static int leave(void **state)
{
    OK(cuMemFree(from));
    OK(cuMemFree(to));
    GOOD(ncclCommDestroy(comm));
    return 0;
}

/* Every word of the piece at `index` of `to`. */
static void assert_piece(int index, int wanted)
{
    int words[WORDS];

    OK(cuMemcpyDtoH(words, to + index * BYTES, BYTES));
    for (int i = 0; i < WORDS; i++) {
        assert_int_equal(words[i], wanted);
    }
}

static void test_gather(void **state)
{
    GOOD(ncclAllGather((void *)from, (void *)to, WORDS, ncclInt, comm, NULL));
    for (int i = 0; i < RANKS; i++) {
        assert_piece(i, 100);
    }
}

/* No more is copied than SIM_NCCL_ABSENT_BYTES for all ranks together. */
static void test_much(void **state)
{
    size_t words = SIM_NCCL_ABSENT_BYTES / sizeof(int) / RANKS; /* of a piece */
    CUdeviceptr own, all;
    int found;

    OK(cuMemAlloc(&own, SIM_NCCL_ABSENT_BYTES));
    OK(cuMemAlloc(&all, 2 * SIM_NCCL_ABSENT_BYTES));
    OK(cuMemsetD32(own, 100, SIM_NCCL_ABSENT_BYTES / sizeof(int)));
    for (size_t more = 0; more < 2; more++) {
        OK(cuMemsetD32(all, 7, 2 * SIM_NCCL_ABSENT_BYTES / sizeof(int)));
        GOOD(ncclAllGather((void *)own, (void *)all, words + more, ncclInt, comm, NULL));
        OK(cuMemcpyDtoH(&found, all, sizeof(found)));
        assert_int_equal(found, more == 0 ? 100 : 7);
    }
    OK(cuMemFree(own));
    OK(cuMemFree(all));
}

static void test_reductions(void **state)
{
    GOOD(ncclReduceScatter((void *)from, (void *)to, WORDS, ncclInt, ncclSum, comm, NULL));
    assert_piece(0, 100 + RANK);
    GOOD(ncclAllReduce((void *)from, (void *)to, RANKS * WORDS, ncclInt, ncclMax, comm, NULL));
    assert_piece(3, 103);
}

/* What another rank would send is what this one has there. */
static void test_broadcast(void **state)
{
    GOOD(ncclBroadcast((void *)from, (void *)to, WORDS, ncclInt, 0, comm, NULL));
    assert_piece(0, 7);
    GOOD(ncclBroadcast((void *)from, (void *)to, WORDS, ncclInt, RANK, comm, NULL));
    assert_piece(0, 100);
}

/* Messages come from the rank that one of this group goes to, if they are as long. */
static void test_messages(void **state)
{
    GOOD(ncclGroupStart());
    for (int i = 0; i < RANKS; i++) {
        GOOD(ncclSend((void *)(from + i * BYTES), WORDS, ncclInt, i, comm, NULL));
        GOOD(ncclRecv((void *)(to + i * BYTES), WORDS, ncclInt, i, comm, NULL));
    }
    GOOD(ncclGroupEnd());
    for (int i = 0; i < RANKS; i++) {
        assert_piece(i, 100 + i);
    }
    GOOD(ncclGroupStart());
    GOOD(ncclRecv((void *)to, WORDS, ncclInt, RANKS - 1, comm, NULL)); /* of no group's message */
    GOOD(ncclSend((void *)from, WORDS, ncclInt, 3, comm, NULL));
    GOOD(ncclRecv((void *)to, WORDS / 2, ncclInt, 3, comm, NULL));
    GOOD(ncclRecv((void *)to, WORDS, ncclInt, 1, comm, NULL));
    GOOD(ncclGroupEnd());
    assert_piece(0, 100);
}

static void test_split(void **state)
{
    ncclComm_t part;
    int count;

    spillway_sim_nccl_split(2);
    GOOD(ncclCommSplit(comm, 5, 1, &part, NULL));
    GOOD(ncclCommCount(part, &count));
    assert_int_equal(count, 2);
    GOOD(ncclCommUserRank(part, &count));
    assert_int_equal(count, 1);
    GOOD(ncclAllGather((void *)from, (void *)to, WORDS, ncclInt, part, NULL));
    assert_piece(1, 100);
    assert_piece(2, 7);
    GOOD(ncclCommDestroy(part));
    GOOD(ncclCommSplit(comm, NCCL_SPLIT_NOCOLOR, 0, &part, NULL));
    assert_null(part);
    spillway_sim_nccl_split(0);
    assert_int_equal(ncclCommSplit(comm, 5, 1, &part, NULL), ncclInvalidUsage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_gather, join, leave),
        cmocka_unit_test_setup_teardown(test_much, join, leave),
        cmocka_unit_test_setup_teardown(test_reductions, join, leave),
        cmocka_unit_test_setup_teardown(test_broadcast, join, leave),
        cmocka_unit_test_setup_teardown(test_messages, join, leave),
        cmocka_unit_test_setup_teardown(test_split, join, leave),
    };

    setenv("SPILLWAY_SIM_WORLD", "4", 1);
    return cmocka_run_group_tests(tests, use_device, NULL);
}
